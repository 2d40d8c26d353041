/** What no request of a keeper may ever be, whatever happens. */
import type { SentRequest } from './client.js'
import type { VirtualProcess } from './virtual-process.js'
import type { World } from './world.js'

/** How long a pass may act on a roster that it has read: after that a user who is wanted again must be left alone. */
export const rosterAgeMs = 20 * 60_000

export class RequestRules {
  readonly #world: World
  readonly #callsUnderWay = new Map<VirtualProcess, (string | undefined)[]>()
  readonly #lastRequestOrder = new Map<string, number>()
  readonly #recentRequests = new Map<VirtualProcess, number[]>()

  constructor(world: World) {
    this.#world = world
  }

  check(request: SentRequest): void {
    this.#checkRate(request)
    const needsIntent = request.kind === 'recreate' || request.kind === 'unsubscribe'
    if (needsIntent && request.attempt === 1) this.#checkIntent(request)
    if (request.kind === 'unsubscribe') this.#checkRemoval(request)
    this.#lastRequestOrder.set(keyOf(request), this.#world.store.order)
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

  #checkRate(request: SentRequest): void {
    const limit = this.#world.options.keeper?.maxRequestsPerSecond ?? 50
    const recent = this.#recentRequests.get(request.process) ?? []
    while (recent[0] !== undefined && recent[0] <= request.atMs - 1_000) recent.shift()
    recent.push(request.atMs)
    this.#recentRequests.set(request.process, recent)
    if (recent.length > limit)
      this.#world.violate(request.process, `${recent.length} requests within a second`)
  }

  /** Before a recreate and an unsubscribe the user's record is written and read back. */
  #checkIntent(request: SentRequest): void {
    const { process, username, kind } = request
    if (username === undefined) return
    const since = this.#lastRequestOrder.get(keyOf(request)) ?? -1
    if (!this.#world.store.hasReadBack(process, username, since)) {
      this.#world.violate(process, `${kind} for ${username} without an intent that was read back`)
    }
  }

  /** Only what a keeper made is ended, and only if it is no longer wanted as it is. */
  #checkRemoval({ process, subscriptionId }: SentRequest): void {
    const subscription = this.#world.service.subscriptions.find(({ id }) => id === subscriptionId)
    if (subscription?.createdBy !== 'keeper') {
      this.#world.violate(process, `unsubscribe of ${subscriptionId}, which is somebody else's`)
      return
    }
    const [username = ''] = subscription.usernames
    const wantedSince = this.#world.wanted.get(username)
    const isWanted = wantedSince !== undefined && wantedSince < this.#world.time.nowMs - rosterAgeMs
    const asWanted = this.#world.isAsConfigured(subscription)
    const hasOther = this.#world.service
      .activeFor(username)
      .some((each) => each !== subscription && this.#world.isAsConfigured(each))
    if (isWanted && asWanted && !hasOther && subscription.end === undefined && !this.#world.isSayingGoodbye) {
      this.#world.violate(process, `unsubscribe of ${subscriptionId} of ${username}, who is wanted`)
    }
  }
}

function keyOf({ process, username }: SentRequest): string {
  return `${process.name} ${username}`
}
