/** The oracle sees the state of the server: it makes calls with a client and compares what the client says with that state. */
import {
  type AnyNotificationError,
  type CreateSubscriptionInput,
  NotificationClient,
  type NotificationClientOptions,
  NotificationError,
} from 'notification-subscriber'
import { type Emulator, type SubscriptionRecord, startEmulator } from 'notification-subscriber/emulator'
import { expect } from 'vitest'

/** A fault that hangs only ever ends by this; one that takes a moment sometimes does. */
export const hastyMs = 10

export type Transport = 'in process' | 'over TLS'

export class Oracle implements AsyncDisposable {
  readonly emulator: Emulator
  #client: NotificationClient
  readonly #options: NotificationClientOptions
  /** Cleans up and settles: nothing that hangs in the client under test is in its way. */
  readonly #calm: NotificationClient
  /** What the service is still working on, also for a client that has given up. */
  readonly #underWay: Set<Promise<unknown>>
  #created: number[] = []

  private constructor(emulator: Emulator, transport: Transport) {
    const underWay = new Set<Promise<unknown>>()
    const inProcess: NotificationClientOptions['fetch'] = (url, init) => {
      const answer = emulator.fetch(new Request(url, init))
      underWay.add(answer)
      return answer.finally(() => underWay.delete(answer))
    }
    this.emulator = emulator
    this.#underWay = underWay
    this.#calm = new NotificationClient({
      ...emulator.clientOptions,
      dispatcher: undefined,
      fetch: inProcess,
    })
    this.#options = {
      ...emulator.clientOptions,
      ...(transport === 'in process' && { dispatcher: undefined, fetch: inProcess, timeoutMs: hastyMs }),
      retry: { baseDelayMs: 0 },
    }
    this.#client = new NotificationClient(this.#options)
  }

  static async of(transport: Transport): Promise<Oracle> {
    return new Oracle(await startEmulator(), transport)
  }

  /** From here on the service is empty and the client new. */
  async reset(): Promise<void> {
    await this.#client.close()
    await Promise.all(this.#ids().map((id) => this.#calm.unsubscribe(id)))
    this.#client = new NotificationClient(this.#options)
    this.#created = []
  }

  /** The id of one of the subscriptions that were created, or of none. */
  idOf(which: number): number {
    return this.#created[which % this.#created.length] ?? 999_999
  }

  async create(input: CreateSubscriptionInput, options: { timeoutMs: number }): Promise<void> {
    const before = this.#state()
    const outcome = await this.#outcomeOf(this.#client.createSubscription(input, options))
    this.#expectOnlyThisChanged(before, input)
    if ('value' in outcome) {
      const { subscriptionId } = outcome.value
      expect(this.#find(subscriptionId)).toSatisfy((record) => isIdentical(record, input))
      expect(before.map((record) => record.subscriptionId)).not.toContain(subscriptionId)
      this.#created.push(subscriptionId)
      return
    }
    const { error } = outcome
    switch (error.code) {
      case 'OUTCOME_UNKNOWN':
        return this.#settle(input)
      case 'RESPONSE_VALIDATION':
        // Of a create it says that a subscription exists, of a token that nothing was sent.
        if (error.message.includes('token endpoint')) return expect(this.#state()).toEqual(before)
        expect(this.#state().some((record) => isIdentical(record, input))).toBe(true)
        return
      case 'SUBSCRIPTION_CONFLICT': {
        expect(this.#state()).toEqual(before)
        const others = before.filter((record) => !input.recreateIfExists || !isIdentical(record, input))
        expect(others.some((record) => overlaps(record, input))).toBe(true)
        return
      }
      default:
        expect(this.#state(), error.code).toEqual(before)
    }
  }

  async unsubscribe(id: number, options: { timeoutMs: number }): Promise<void> {
    const before = this.#state()
    const outcome = await this.#outcomeOf(this.#client.unsubscribe(id, options))
    const without = before.filter(({ subscriptionId }) => subscriptionId !== id)
    if ('value' in outcome) expect(this.#state()).toEqual(without)
    else if (outcome.error.code === 'SUBSCRIPTION_NOT_FOUND')
      expect([before, this.#state()]).toEqual([without, without])
    else if (saysMaybe(outcome.error)) expect([before, without]).toContainEqual(this.#state())
    else expect(this.#state(), outcome.error.message).toEqual(before)
  }

  async update(id: number, token: string, options: { timeoutMs: number }): Promise<void> {
    const before = this.#find(id)?.parameters
    const idsBefore = this.#ids()
    const outcome = await this.#outcomeOf(
      this.#client.updateSubscriptionParameters(id, { parameters: { token } }, options),
    )
    const after = this.#find(id)?.parameters
    expect(this.#ids()).toEqual(idsBefore)
    if ('value' in outcome) expect(after).toEqual({ token })
    else if (outcome.error.code === 'SUBSCRIPTION_NOT_FOUND')
      expect([before, after]).toEqual([undefined, undefined])
    // A page in place of the empty answer tells nothing about the subscription.
    else if (saysMaybe(outcome.error) || outcome.error.code === 'RESPONSE_VALIDATION')
      expect([before, { token }]).toContainEqual(after)
    else expect(after, outcome.error.message).toEqual(before)
  }

  /** What the error advises: afterwards the client and the service agree. */
  async #settle(input: CreateSubscriptionInput): Promise<void> {
    const result = await this.#calm.tryCreateSubscription({ ...input, recreateIfExists: true })
    if (result.created) {
      expect(this.#find(result.subscriptionId)).toSatisfy((record) => isIdentical(record, input))
      this.#created.push(result.subscriptionId)
    } else {
      expect(result.conflict.reason).toBe('partial-overlap')
      expect(this.#state().some((record) => overlaps(record, input) && !isIdentical(record, input))).toBe(
        true,
      )
    }
  }

  /** The others are what they were, and of the wanted kind there is one at most: the old or a new one. */
  #expectOnlyThisChanged(before: readonly SubscriptionRecord[], input: CreateSubscriptionInput): void {
    const others = (records: readonly SubscriptionRecord[]) =>
      records.filter((record) => !isIdentical(record, input))
    expect(others(this.#state())).toEqual(others(before))
    expect(this.#state().filter((record) => isIdentical(record, input)).length).toBeLessThanOrEqual(1)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close()
    await this.emulator.close()
  }

  async #outcomeOf<T>(promise: Promise<T>): Promise<{ value: T } | { error: AnyNotificationError }> {
    try {
      return { value: await promise }
    } catch (error) {
      if (!(error instanceof NotificationError)) throw error
      return { error }
    } finally {
      // A call that timed out may take effect after that, but not while the state is looked at.
      await Promise.allSettled(this.#underWay)
      this.emulator.clearFaults()
    }
  }

  #state(): readonly SubscriptionRecord[] {
    return this.emulator.subscriptions
  }

  #ids(): number[] {
    return this.#state().map(({ subscriptionId }) => subscriptionId)
  }

  #find(id: number): SubscriptionRecord | undefined {
    return this.#state().find(({ subscriptionId }) => subscriptionId === id)
  }
}

const sorted = (values: Iterable<string>) => [...values].sort()

function isIdentical(record: SubscriptionRecord, input: CreateSubscriptionInput): boolean {
  return (
    sorted(record.notificationTypes).join() === sorted(input.notificationTypes).join() &&
    sorted(record.usernames).join() === sorted(input.usernames).join()
  )
}

function overlaps(record: SubscriptionRecord, input: CreateSubscriptionInput): boolean {
  return (
    input.notificationTypes.some((type) => [...record.notificationTypes].includes(type)) &&
    input.usernames.some((name) => [...record.usernames].includes(name))
  )
}

/** Whether an error leaves open that the call has worked. */
function saysMaybe(error: AnyNotificationError): boolean {
  if (error.code === 'API') return error.message.includes('may still have taken effect')
  return error.code === 'TIMEOUT' || (error.code === 'CONNECTION' && error.requestSent)
}
