/** What no request of a keeper may ever be, whatever happens. */
import type { SentRequest } from './client.js'
import { isRemovedFor } from './rosters.js'
import type { VirtualProcess } from './virtual-process.js'
import type { World } from './world.js'

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
    this.#checkOwner(request)
    if (request.kind === 'unsubscribe') this.#checkRemoval(request)
    const { process, username } = request
    this.#lastRequestOrder.set(`${process.name} ${username}`, this.#world.store.order)
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
    // The client repeats by itself what was answered 401, once and with a new token.
    if (request.isReauthorized) return
    const limit = this.#world.options.keeper?.maxRequestsPerSecond ?? 50
    const recent = this.#recentRequests.get(request.process) ?? []
    // A sum of times is not exact to the last digit: a microsecond is forgiven.
    while (recent[0] !== undefined && recent[0] <= request.atMs - 1_000 + 0.001) recent.shift()
    recent.push(request.atMs)
    this.#recentRequests.set(request.process, recent)
    if (recent.length > limit)
      this.#world.violate(request.process, `${recent.length} requests within a second`)
  }

  /** Before a recreate and an unsubscribe the user's record is written and read back, of a store that works. */
  #checkIntent({ process, username, kind }: SentRequest): void {
    if (username === undefined) return
    const since = this.#lastRequestOrder.get(`${process.name} ${username}`) ?? -1
    const { store } = this.#world
    const record = store.readBack(process, username, since)
    if (record === undefined) {
      this.#world.violate(process, `${kind} for ${username} without an intent that was read back`)
    } else if (kind === 'recreate' && !record.s.some(({ doubt }) => doubt === 1)) {
      this.#world.violate(
        process,
        `recreate for ${username}, and the record that was read back says nothing of it`,
      )
    }
    if (store.hasFailedSince(process, username)) {
      this.#world.violate(process, `${kind} for ${username} while the store fails`)
    }
  }

  /** What somebody else has made is neither changed nor ended. */
  #checkOwner({ process, subscriptionId, kind }: SentRequest): void {
    if (subscriptionId === undefined) return
    const subscription = this.#world.service.subscriptions.find(({ id }) => id === subscriptionId)
    if (subscription?.createdBy === 'keeper') return
    this.#world.violate(process, `${kind} of ${subscriptionId}, which is somebody else's`)
  }

  /** Nothing is ended of a user who is wanted, as far as the process can know, and whose subscription is as it wants it. */
  #checkRemoval({ process, subscriptionId }: SentRequest): void {
    const { service, nodes, wanted } = this.#world
    const subscription = service.find(subscriptionId ?? 0)
    const configuration = nodes.find((node) => node.process === process)?.configuration
    if (subscription === undefined || configuration === undefined || this.#world.isSayingGoodbye) return
    const [username = ''] = subscription.usernames
    const isWanted = wanted.has(username) && !isRemovedFor(this.#world, process, username)
    const asWanted = this.#world.isAsConfigured(subscription, configuration)
    if (isWanted && asWanted) {
      this.#world.violate(process, `unsubscribe of ${subscriptionId} of ${username}, who is wanted`)
    }
  }
}
