/**
 * The notification service, as docs/service.md reads to somebody in no hurry: a list of all subscriptions there ever
 * were, and for each user a list of those that are active.
 */

export interface CreateRequest {
  readonly notificationTypes: readonly string[]
  readonly usernames: readonly string[]
  readonly callbackUrl: string
  readonly recreateIfExists: boolean
  readonly parameters: Readonly<Record<string, string>>
}

type EndReason = 'unsubscribed' | 'replaced' | 'three-failures' | 'ended'

export interface ModelSubscription {
  readonly id: number
  readonly notificationTypes: readonly string[]
  readonly usernames: readonly string[]
  readonly callbackUrl: string
  /** Who asked for it: a keeper, or somebody else who shares the service. */
  readonly createdBy: 'keeper' | 'somebody else'
  readonly createdAtMs: number
  parameters: Record<string, string>
  failures: number
  end?: {
    readonly atMs: number
    readonly reason: EndReason
    readonly by: 'keeper' | 'somebody else' | 'service'
  }
}

export type CreateAnswer =
  | { readonly status: 201; readonly id: number }
  | { readonly status: 409; readonly conflictsWith: ModelSubscription }

const firstId = 1_001

export class ModelService {
  /** All there ever were, the oldest first. */
  readonly subscriptions: ModelSubscription[] = []
  readonly #nowMs: () => number
  readonly #activeByUser = new Map<string, ModelSubscription[]>()

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  create(request: CreateRequest, by: ModelSubscription['createdBy']): CreateAnswer {
    const overlapping = request.usernames
      .flatMap((name) => this.activeFor(name))
      .find(
        (each) =>
          each.callbackUrl === request.callbackUrl &&
          each.notificationTypes.some((type) => request.notificationTypes.includes(type)),
      )
    if (overlapping !== undefined) {
      const isIdentical =
        sameSet(overlapping.usernames, request.usernames) &&
        sameSet(overlapping.notificationTypes, request.notificationTypes)
      if (!isIdentical || !request.recreateIfExists) return { status: 409, conflictsWith: overlapping }
      this.#end(overlapping, 'replaced', by)
    }
    const subscription: ModelSubscription = {
      id: firstId + this.subscriptions.length,
      notificationTypes: [...request.notificationTypes],
      usernames: [...request.usernames],
      callbackUrl: request.callbackUrl,
      createdBy: by,
      createdAtMs: this.#nowMs(),
      parameters: { ...request.parameters },
      failures: 0,
    }
    this.subscriptions.push(subscription)
    for (const name of request.usernames) {
      this.#activeByUser.set(name, [...this.activeFor(name), subscription])
    }
    return { status: 201, id: subscription.id }
  }

  unsubscribe(id: number, by: 'keeper' | 'somebody else'): 204 | 404 {
    const subscription = this.find(id)
    if (subscription === undefined) return 404
    this.#end(subscription, 'unsubscribed', by)
    return 204
  }

  update(id: number, parameters: Readonly<Record<string, string>>): 200 | 404 {
    const subscription = this.find(id)
    if (subscription === undefined) return 404
    Object.assign(subscription.parameters, parameters)
    return 200
  }

  /** A callback was answered or not; the third failure in a row is the end. */
  callback(id: number, succeeded: boolean): void {
    const subscription = this.find(id)
    if (subscription === undefined) return
    subscription.failures = succeeded ? 0 : subscription.failures + 1
    if (subscription.failures >= 3) this.#end(subscription, 'three-failures', 'service')
  }

  /** It ends without a word. */
  end(id: number): void {
    const subscription = this.find(id)
    if (subscription !== undefined) this.#end(subscription, 'ended', 'service')
  }

  active(): ModelSubscription[] {
    return this.subscriptions.filter((each) => each.end === undefined)
  }

  activeFor(username: string): readonly ModelSubscription[] {
    return this.#activeByUser.get(username) ?? []
  }

  /** The active subscription with this id. */
  find(id: number): ModelSubscription | undefined {
    const subscription = this.subscriptions[id - firstId]
    return subscription?.end === undefined ? subscription : undefined
  }

  #end(subscription: ModelSubscription, reason: EndReason, by: 'keeper' | 'somebody else' | 'service'): void {
    subscription.end = { atMs: this.#nowMs(), reason, by }
    for (const name of subscription.usernames) {
      const others = this.activeFor(name).filter((each) => each !== subscription)
      this.#activeByUser.set(name, others)
    }
  }
}

export function sameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item) => b.includes(item))
}

export function isKept({ createdBy }: ModelSubscription): boolean {
  return createdBy === 'keeper'
}
