/** What no request may be, at any time. */
import type { SentRequest } from './client.js'
import type { ModelService } from './service.js'
import type { ModelStore } from './store.js'
import type { VirtualTime } from './virtual-time.js'

export interface Surroundings {
  readonly time: VirtualTime
  readonly service: ModelService
  readonly store: ModelStore
  readonly nodes: readonly unknown[]
  requestsOf(username: string | undefined): readonly SentRequest[]
  /** When something happened that may need requests. */
  readonly causesMs: readonly number[]
  readonly isUncertain: boolean
  readonly areIdsGivenAnew: boolean
  readonly stopping: ReadonlySet<unknown>
  readonly isConfigurationNew: boolean
  readonly options: { readonly keeper?: { readonly existing?: 'replace' | 'report' | undefined } }
  violate(what: string): void
}

const minute = 60_000
const callTimeoutMs = 30_000
/** A claim lasts for two minutes, and the call after it for half a minute. */
const storeMemoryMs = 3 * minute

export function checkRequest(world: Surroundings, request: SentRequest): void {
  // Whose subscription is meant is unknown then.
  if (world.areIdsGivenAnew && request.subscriptionId !== undefined) return
  const problem =
    afterStop(world, request) ??
    callInFlight(world, request) ??
    tooMany(world, request) ??
    harmToOthers(world, request) ??
    needless(world, request)
  const { process, kind, username } = request
  if (problem !== undefined) world.violate(`${process.name} sends ${kind} for ${username}: ${problem}`)
}

function afterStop({ stopping }: Surroundings, { process }: SentRequest) {
  return stopping.has(process) ? 'its keeper is being stopped' : undefined
}

/** While the store works, no two calls are in flight for one user; in one process never. */
function callInFlight(world: Surroundings, { atMs, username, process }: SentRequest) {
  const { areIdsGivenAnew, store } = world
  const isStoreRight = store.hasWorkedSince(atMs - storeMemoryMs)
  const other = newest(world.requestsOf(username), atMs - callTimeoutMs).find((each) => {
    // The call with an id that was given anew is of the user before.
    const isOfUser = !(areIdsGivenAnew && each.subscriptionId !== undefined)
    const isInFlight = isOfUser && each.isAwaited && !each.process.isDead
    return isInFlight && (isStoreRight || each.process === process)
  })
  return other && `a call of ${other.process.name} is in flight since ${other.atMs}`
}

/**
 * Ten attempts per process in ten minutes are a backoff from 5 s to 5 min, and the proof of each interval. A refused call with
 * the id, and the create after it, are one attempt.
 */
function tooMany(world: Surroundings, { atMs, username }: SentRequest) {
  const { nodes, causesMs } = world
  const fromMs = atMs - 10 * minute
  const ofUser = newest(world.requestsOf(username), fromMs)
  const sent = ofUser.filter((each, index) => {
    const before = ofUser.slice(0, index).findLast(({ process }) => process === each.process)
    return each.kind !== 'create' || before?.subscriptionId === undefined
  }).length
  const most = 10 * nodes.length + 8 * causesMs.filter((ms) => ms >= fromMs).length
  return sent > most ? `${sent} attempts in ten minutes` : undefined
}

function harmToOthers(world: Surroundings, { kind, username = '', subscriptionId = 0 }: SentRequest) {
  const { service, options } = world
  if (service.find(subscriptionId)?.owner === 'another app') return 'the subscription is of another app'
  if (kind !== 'recreate' || options.keeper?.existing !== 'report') return undefined
  const twin = service
    .activeFor(username)
    .find(({ owner, usernames }) => owner === 'another app' && usernames.length === 1)
  // It may be what an unanswered create of the keeper made.
  const isSimilar = world.requestsOf(username).some((each) => !each.isAnswered || each.process.isDead)
  return twin !== undefined && !isSimilar ? 'it replaces a subscription of another app' : undefined
}

/** What a keeper knows for certain it does not replace; and what is in its way it replaces once a day. */
function needless(world: Surroundings, { kind, username = '' }: SentRequest) {
  const { isConfigurationNew, isUncertain, service, store } = world
  if (kind !== 'recreate' || isConfigurationNew || isUncertain || !store.hasWorkedSince(0)) return undefined
  const sent = world.requestsOf(username)
  const isShared = service.subscriptions.some(
    (each) => each.owner !== 'keeper' && each.usernames.includes(username),
  )
  const isFirst = isShared && !sent.some((each) => each.kind === 'recreate')
  // A request with the id found nothing, or was refused, as some services do for an ended subscription: it may be out of date.
  const isIdOpen = sent
    .slice(-2)
    .some(({ subscriptionId, isAnswered, status = isAnswered ? 400 : 0 }) => subscriptionId && status >= 400)
  return isFirst || isIdOpen || sent.some(({ isAnswered }) => !isAnswered)
    ? undefined
    : 'every call for this user was answered'
}

function newest(requests: readonly SentRequest[], fromMs: number): SentRequest[] {
  const first = requests.findLastIndex(({ atMs }) => atMs < fromMs) + 1
  return requests.slice(first)
}
