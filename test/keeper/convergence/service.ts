/** The notification service as docs/service.md describes it, with a list of all subscriptions that ever existed. */

export interface CreateRequest {
  readonly notificationTypes: readonly string[]
  readonly usernames: readonly string[]
  readonly callbackUrl: string
  readonly recreateIfExists: boolean
  readonly parameters: Readonly<Record<string, string>>
}

export type Owner = 'keeper' | 'another app'

export interface ModelSubscription {
  readonly id: number
  readonly notificationTypes: readonly string[]
  readonly usernames: readonly string[]
  readonly callbackUrl: string
  readonly owner: Owner
  readonly createdAtMs: number
  parameters: Record<string, string>
  failures: number
  endedAtMs?: number
  endedBy?: Owner | 'service' | 'operator'
}

export const firstId = 1_001

export class ModelService {
  /** All that ever existed, the oldest first. */
  readonly subscriptions: ModelSubscription[] = []
  readonly #activeByUser = new Map<string, ModelSubscription[]>()
  /** How many there had been when the service last began anew. */
  #forgotten = 0

  constructor(private readonly nowMs: () => number) {}

  create(
    request: CreateRequest,
    owner: Owner,
  ): { readonly status: 201; readonly id: number } | { readonly status: 409 } {
    const { notificationTypes, usernames, callbackUrl } = request
    const overlapping = usernames
      .flatMap((name) => this.activeFor(name))
      .find(
        (each) =>
          each.callbackUrl === callbackUrl &&
          each.notificationTypes.some((type) => notificationTypes.includes(type)),
      )
    if (overlapping !== undefined) {
      const isIdentical =
        sameSet(overlapping.usernames, usernames) && sameSet(overlapping.notificationTypes, notificationTypes)
      if (!isIdentical || !request.recreateIfExists) return { status: 409 }
      this.end(overlapping.id, owner)
    }
    const id = firstId + this.subscriptions.length - this.#forgotten
    const subscription: ModelSubscription = {
      id,
      notificationTypes: [...notificationTypes],
      usernames: [...usernames],
      callbackUrl,
      owner,
      createdAtMs: this.nowMs(),
      parameters: { ...request.parameters },
      failures: 0,
    }
    this.subscriptions.push(subscription)
    for (const name of usernames) this.#activeByUser.set(name, [...this.activeFor(name), subscription])
    return { status: 201, id }
  }

  /** A callback was answered or not; the third failure in a row is the end. */
  callback(id: number, succeeds: boolean): void {
    const subscription = this.find(id)
    if (subscription === undefined) return
    subscription.failures = succeeds ? 0 : subscription.failures + 1
    if (subscription.failures >= 3) this.end(id, 'service')
  }

  update(id: number, parameters: Readonly<Record<string, string>>): 200 | 404 {
    const subscription = this.find(id)
    if (subscription === undefined) return 404
    Object.assign(subscription.parameters, parameters)
    return 200
  }

  end(id: number, by: NonNullable<ModelSubscription['endedBy']>): 204 | 404 {
    const subscription = this.find(id)
    if (subscription === undefined) return 404
    subscription.endedAtMs = this.nowMs()
    subscription.endedBy = by
    for (const name of subscription.usernames) {
      const others = this.activeFor(name).filter((each) => each !== subscription)
      this.#activeByUser.set(name, others)
    }
    return 204
  }

  /** Loses all subscriptions, and gives their ids anew. */
  beginAnew(): void {
    for (const { id, owner } of [...this.active('keeper'), ...this.active('another app')]) this.end(id, owner)
    this.#forgotten = this.subscriptions.length
  }

  active(owner: Owner): ModelSubscription[] {
    return this.subscriptions.filter((each) => each.endedAtMs === undefined && each.owner === owner)
  }

  activeFor(username: string): readonly ModelSubscription[] {
    return this.#activeByUser.get(username) ?? []
  }

  find(id: number): ModelSubscription | undefined {
    const subscription = this.subscriptions[this.#indexOf(id)]
    return subscription?.endedAtMs === undefined ? subscription : undefined
  }

  /** The user of a subscription, which may have ended. */
  userOf(id: number): string | undefined {
    return this.subscriptions[this.#indexOf(id)]?.usernames[0]
  }

  #indexOf(id: number): number {
    return id < firstId ? -1 : id - firstId + this.#forgotten
  }
}

export function sameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item) => b.includes(item))
}
