/**
 * What no request of a keeper may ever be, whatever happens:
 *
 * - sent for a user while another request for the user may still take effect, by whatever process
 * - sent without a claim that names it, or by a process whose store fails
 * - a create for a user who is no member
 * - faster than the configured rate, or more at a time than configured
 * - an unsubscribe of a wanted user, or a change to somebody else's subscription
 * - a second replacement of what stands in the way, within a day
 */
import type { SentRequest } from '../client.js'
import { latestEffectMs } from '../network-outcomes.js'
import { isRemovedFor } from '../rosters.js'
import type { ModelStore } from '../store.js'
import type { VirtualProcess } from '../virtual-process.js'
import { haveSameClock, seconds, type World } from '../world.js'

/** A request follows its claim within this time, or is claimed again. */
export const claimFreshMs = 10_000
const callTimeoutMs = 30_000
/** A claim that has not changed for so long was left behind. */
const claimStaleMs = 120_000
const dayMs = 86_400_000

export class RequestRules {
  readonly #world: World
  readonly #callsUnderWay = new Map<VirtualProcess, (string | undefined)[]>()
  readonly #recentRequests = new Map<VirtualProcess, number[]>()
  readonly #byUser = new Map<string, SentRequest[]>()
  /** When a subscription in the way was replaced for a user last. */
  readonly #replacedMs = new Map<string, number>()
  /** The last removal of each user that a process has made good, after it had asked the roster again. */
  readonly #undoneRemovalMs = new Map<string, number>()

  constructor(world: World) {
    this.#world = world
  }

  check(request: SentRequest): void {
    this.#checkRate(request)
    if (!request.isReauthorized) {
      if (request.attempt > 1) this.#refuse(request, 'is repeated by the client')
      this.#checkAlone(request)
      this.#checkClaim(request)
    }
    if (request.kind === 'create' || request.kind === 'recreate') this.#checkMembership(request)
    this.#checkOwner(request)
    if (request.kind === 'unsubscribe') this.#checkRemoval(request)
    const { username = '' } = request
    const earlier = this.#byUser.get(username) ?? []
    this.#byUser.set(username, earlier)
    earlier.push(request)
  }

  callBegins(process: VirtualProcess, username: string | undefined): void {
    const calls = this.#callsUnderWay.get(process) ?? []
    if (username !== undefined && calls.includes(username)) {
      this.#world.violate(process, `two calls for ${username} at a time`)
    }
    calls.push(username)
    this.#callsUnderWay.set(process, calls)
    const limit = this.#world.options.keeper?.concurrency ?? 8
    if (calls.length > limit) this.#world.violate(process, `${calls.length} calls at a time`)
  }

  callEnds(process: VirtualProcess, username: string | undefined): void {
    const calls = this.#callsUnderWay.get(process) ?? []
    calls.splice(calls.indexOf(username), 1)
  }

  #refuse({ process, kind, username }: SentRequest, why: string): void {
    this.#world.violate(process, `${kind} for ${username} ${why}`)
  }

  /** A request waits for the rate first and then for its claim, so that a few more may leave within one second. */
  #checkRate(request: SentRequest): void {
    // The client repeats by itself what was answered 401, once and with a new token.
    if (request.isReauthorized) return
    const { maxRequestsPerSecond = 50, concurrency = 8 } = this.#world.options.keeper ?? {}
    const recent = this.#recentRequests.get(request.process) ?? []
    // A sum of times is not exact to the last digit: a microsecond is forgiven.
    while (recent[0] !== undefined && recent[0] <= request.atMs - 1_000 + 0.001) recent.shift()
    recent.push(request.atMs)
    this.#recentRequests.set(request.process, recent)
    if (recent.length > maxRequestsPerSecond + concurrency) {
      this.#world.violate(request.process, `${recent.length} requests within a second`)
    }
  }

  /** Never are two requests for one user under way, across processes and crashes, unless the store lost the claim. */
  #checkAlone(request: SentRequest): void {
    const { username = '', atMs } = request
    if (this.#world.store.mayHaveLost(username, atMs - latestEffectMs - claimFreshMs)) return
    const other = this.#byUser
      .get(username)
      ?.findLast((each) => each.answeredAtMs === undefined && atMs - each.atMs < latestEffectMs)
    if (other === undefined || this.#isOutageTest(other, request)) return
    this.#refuse(
      request,
      `while the ${other.kind} of ${other.process.name} of ${seconds(other.atMs)} is under way`,
    )
  }

  /**
   * In an outage one call at a time tests whether the service is back. It may be for a user whose plain create was not
   * answered: another create makes no second subscription, and an update makes none.
   */
  #isOutageTest(before: SentRequest, { process, kind }: SentRequest): boolean {
    const outage = this.#world.problems.findLast(
      (each) => each.process === process && ['SERVICE', 'CREDENTIALS'].includes(each.what.code),
    )
    const isTest = outage !== undefined && !outage.what.resolved && before.process === process
    return isTest && before.kind === 'create' && (kind === 'create' || kind === 'update')
  }

  /** Before each request its sender has written a claim that names it, and the store works. */
  #checkClaim(request: SentRequest): void {
    const { process, username, kind, atMs } = request
    if (username === undefined) return
    const { store } = this.#world
    if (store.isFailingFor(process)) this.#refuse(request, 'while the store fails')
    const write = store.lastWrite(process, username)
    if (write?.record.claim?.call !== kind) this.#refuse(request, 'without a claim')
    else if (atMs - write.askedMs > claimFreshMs)
      this.#refuse(request, `under a claim of ${seconds(write.askedMs)}`)
    else if (store.text(username) !== write.text && !store.mayHaveLost(username, write.askedMs)) {
      this.#refuse(request, 'under a claim that another process has taken over')
    }
  }

  /** Whoever may have a subscription stands among the members, or a removal could miss the user. */
  #checkMembership(request: SentRequest): void {
    const { username = '' } = request
    const { store } = this.#world
    if (store.isDamaged) return
    if (!store.hasMember(username)) this.#refuse(request, 'who is no member')
    // Only a roster that was asked after a removal brings a user back. Others go on with the record that they find then.
    const removedMs = store.removedMs(username)
    if (removedMs === undefined || this.#undoneRemovalMs.get(username) === removedMs) return
    if ((this.#world.rosterAskedMs.get(request.process) ?? 0) < removedMs) {
      this.#refuse(request, `who was removed at ${seconds(removedMs)}`)
    } else this.#undoneRemovalMs.set(username, removedMs)
  }

  /** What somebody else has made is neither changed nor ended. */
  #checkOwner(request: SentRequest): void {
    const { subscriptionId } = request
    if (subscriptionId === undefined) return
    const subscription = this.#world.service.subscriptions.find(({ id }) => id === subscriptionId)
    if (subscription?.createdBy !== 'keeper')
      this.#refuse(request, `of ${subscriptionId}, which is somebody else's`)
  }

  /** Nothing is ended of a user who is wanted, as far as the process can know, and whose subscription is as it wants it. */
  #checkRemoval(request: SentRequest): void {
    const { process, subscriptionId } = request
    const { service, nodes, wanted } = this.#world
    const subscription = service.find(subscriptionId ?? 0)
    const configuration = nodes.find((node) => node.process === process)?.configuration
    if (subscription === undefined || configuration === undefined || this.#world.isSayingGoodbye) return
    const [username = ''] = subscription.usernames
    const isWanted = wanted.has(username) && !isRemovedFor(this.#world, process, username)
    if (isWanted && this.#world.isAsConfigured(subscription, configuration)) {
      this.#refuse(request, `of ${subscriptionId}, which is wanted`)
    }
  }

  /** Whether what stands in the way of a user may not be replaced now: that was tried within a day. */
  mayConflict(username: string): boolean {
    const { existing = 'replace' } = this.#world.options.keeper ?? {}
    const tried = this.#byUser
      .get(username)
      ?.findLast(({ kind, effect }) => kind === 'recreate' && effect !== undefined)
    return existing === 'report' || (tried !== undefined && this.#world.time.nowMs - tried.atMs < dayMs)
  }

  /** Called when a request has had its effect. */
  checkReplacement(request: SentRequest): void {
    const { username = '', kind, created, input } = request
    if (kind !== 'recreate' || created === undefined) return
    const { service, store, time } = this.#world
    const replaced = service.subscriptions.findLast(
      ({ end, usernames }) =>
        end?.reason === 'replaced' && end.atMs === time.nowMs && usernames[0] === username,
    )
    if (replaced === undefined) return
    // Only so a parameter can be dropped.
    const present = { ...input?.parameters, ...input?.headers }
    if (Object.keys(replaced.parameters).some((name) => !(name in present))) return
    const isOurs = this.#byUser.get(username)?.some((each) => each !== request && isUnknown(store, each))
    const lastMs = this.#replacedMs.get(username) ?? Number.NEGATIVE_INFINITY
    this.#replacedMs.set(username, time.nowMs)
    if (isOurs || !haveSameClock(this.#world) || time.nowMs - lastMs >= dayMs) return
    // What the store has lost may be written back by a process that knew less.
    if (store.mayHaveLost(username, time.nowMs - dayMs)) return
    this.#refuse(request, `replaced ${replaced.id}, and another one at ${seconds(lastMs)}`)
  }
}

/**
 * Whether a create may have left a subscription whose id no keeper knows: the client gave up waiting for the answer, or
 * the sender died, or the store failed, before the id was written. By rules 2 and 9 of the design, what is then in the
 * way may be replaced at any time.
 */
function isUnknown(store: ModelStore, request: SentRequest): boolean {
  const { kind, atMs, answeredAtMs } = request
  if (kind !== 'create' && kind !== 'recreate') return false
  if (answeredAtMs === undefined || answeredAtMs - atMs > callTimeoutMs) return true
  return !isAnswerStored(store, request, answeredAtMs)
}

/** Whether the sender took the claim of a request away, or put its next one in its place, because of the answer. */
function isAnswerStored(
  store: ModelStore,
  { process, username = '', atMs }: SentRequest,
  answeredAtMs: number,
): boolean {
  const writes = store.writes(process, username)
  const claim = writes.findLast(({ askedMs }) => askedMs <= atMs)?.record.claim
  return writes.some(
    ({ askedMs, record }) =>
      askedMs >= answeredAtMs &&
      askedMs < atMs + claimStaleMs - claimFreshMs &&
      record.claim?.nonce !== claim?.nonce,
  )
}
