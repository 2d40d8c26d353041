/**
 * `check --lifecycle`: makes the calls of a subscription's life, and compares each answer with docs/service.md. Ends every
 * subscription that it made, also those whose answer was lost.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { NotificationClient } from '../../client/notification-client.js'
import {
  ApiError,
  ConnectionError,
  InvalidRequestError,
  NotificationError,
  OutcomeUnknownError,
  ResponseValidationError,
  SubscriptionNotFoundError,
  TokenRequestError,
} from '../../errors.js'
import type { Logger } from '../../logger.js'
import type { NotificationType } from '../../notification-types.js'
import { backoffMs } from '../../shared/backoff.js'
import { isOutcomeOpen, isSuccess } from '../../shared/status.js'
import { failed, passed, type Step, skipped } from './step.js'

export interface LifecycleOptions {
  /** Makes one attempt for each call, so that each step shows the first answer. */
  readonly client: Pick<
    NotificationClient,
    'tryCreateSubscription' | 'updateSubscriptionParameters' | 'unsubscribe'
  >
  /** Has to be the logger of the client. */
  readonly statusLog: StatusLog
  readonly username: string
  readonly callbackUrl: string
  /** Sent as headers on callbacks: the receiver's secrets. */
  readonly parameters: Readonly<Record<string, string>>
  /** Asked before each step. */
  readonly isInterrupted: () => boolean
}

/** Remembers the status of the last answer, because the methods of a client do not return the status of a success. */
export class StatusLog implements Logger {
  lastStatus = 0

  debug({ status }: { status?: unknown }): void {
    if (typeof status === 'number') this.lastStatus = status
  }
  info(): void {}
  warn(): void {}
  error(): void {}
}

/** Where the behaviour is documented. */
type Source = 'interface document' | 'public developer pages'

/** What a step found out, for programs and for the report. */
interface Finding {
  readonly documented: string
  readonly source: Source
  readonly result: 'holds' | 'differs' | 'unknown'
  readonly status?: number | undefined
}

/** The answer to one call, or why it says nothing about the service's rules. */
type Observation =
  | { readonly status: number; readonly subscriptionId?: number }
  | { readonly problem: string }

/** One call, and what is documented about its answer. */
interface Behaviour {
  readonly name: string
  readonly documented: string
  readonly source: Source
  /** Returns `undefined` if the call makes no sense after what happened before. */
  readonly call: () => Promise<Observation> | undefined
  readonly holds: (answer: Answer) => boolean
  /** Whether the next calls make sense after this answer. Default: they do. */
  readonly canGoOn?: (answer: Answer) => boolean
}

type Answer = Exclude<Observation, { problem: string }>

const wanted: readonly NotificationType[] = ['behavioral']
const overlapping: readonly NotificationType[] = ['behavioral', 'call-score']

const cleanUpAttempts = 5
const cleanUpBackoff = { firstMs: 250, maxMs: 4_000 }

export class Lifecycle {
  /** The end of the callback URL. It is random, so that no other subscription can be in the way or be replaced. */
  readonly mark = `check=${randomBytes(4).toString('hex')}`
  readonly #options: LifecycleOptions
  /** Subscriptions that were created and may still exist. */
  readonly #ids = new Set<number>()
  /** The types of creates whose answer was lost: each may have made a subscription without a known ID. */
  readonly #lostCreates = new Set<readonly NotificationType[]>()
  /** Subscriptions whose unsubscribe lost its answer. */
  readonly #maybeEnded = new Set<number>()
  #hasUnsubscribed = false
  /** The newest subscription, and the one that it should have replaced. */
  #current: number | undefined
  #replaced: number | undefined

  constructor(options: LifecycleOptions) {
    this.#options = options
  }

  /** Makes the calls one after the other. The calls after an unclear answer are skipped. */
  async *run(): AsyncGenerator<Step> {
    let obstacle: string | undefined
    for (const behaviour of this.#behaviours()) {
      if (this.#options.isInterrupted()) return
      const observation = obstacle === undefined ? await behaviour.call() : undefined
      if (observation === undefined) {
        yield skipped(
          behaviour.name,
          obstacle ?? 'not tried: no new subscription took the place of the first',
        )
        continue
      }
      yield stepOf(behaviour, observation)
      if ('problem' in observation || behaviour.canGoOn?.(observation) === false) {
        obstacle = `not tried after "${behaviour.name}"`
      }
    }
  }

  #behaviours(): readonly Behaviour[] {
    return [
      {
        name: 'Create',
        documented: '201 with the subscription ID',
        source: 'interface document',
        call: () => this.#create(wanted, false),
        holds: ({ status }) => status === 201,
        canGoOn: () => this.#current !== undefined,
      },
      {
        name: 'Duplicate',
        documented: '409',
        source: 'interface document',
        call: () => this.#create(wanted, false),
        holds: ({ status }) => status === 409,
      },
      {
        name: 'Overlap with recreateIfExists',
        documented: '409',
        source: 'interface document',
        call: () => this.#create(overlapping, true),
        holds: ({ status }) => status === 409,
      },
      {
        name: 'Recreate',
        documented: '201 with a new subscription ID',
        source: 'interface document',
        call: async () => {
          const before = this.#current
          const observation = await this.#create(wanted, true)
          if ('subscriptionId' in observation) this.#replaced = before
          return observation
        },
        holds: ({ status, subscriptionId }) => status === 201 && subscriptionId !== this.#replaced,
      },
      {
        name: 'Unsubscribe the replaced one',
        documented: '404',
        source: 'public developer pages',
        call: () => (this.#replaced === this.#current ? undefined : this.#unsubscribe(this.#replaced)),
        holds: ({ status }) => status === 404,
      },
      {
        name: 'Update',
        documented: '2xx',
        source: 'public developer pages',
        call: () => this.#update(this.#current),
        holds: ({ status }) => isSuccess(status),
      },
      {
        name: 'Unsubscribe',
        documented: '204',
        source: 'public developer pages',
        call: () => this.#unsubscribe(this.#current),
        holds: ({ status }) => status === 204,
        canGoOn: ({ status }) => isSuccess(status),
      },
      {
        name: 'Unsubscribe again',
        documented: '404',
        source: 'public developer pages',
        call: () => this.#unsubscribe(this.#current),
        holds: ({ status }) => status === 404,
      },
    ]
  }

  /**
   * Ends everything that was made. A create whose answer was lost is made once more with `recreateIfExists`, which returns
   * the ID. That replaces no other subscription, because the callback URL is random.
   */
  async cleanUp(): Promise<Step> {
    const name = 'Clean-up'
    const wasNeeded = this.#isAnythingLeft
    for (let attempt = 1; this.#isAnythingLeft && attempt <= cleanUpAttempts; attempt++) {
      if (attempt > 1) await sleep(backoffMs(attempt - 1, cleanUpBackoff))
      await this.#endKnown()
      for (const types of this.#lostCreates) await this.#create(types, true)
      await this.#endKnown()
    }
    if (!this.#isAnythingLeft) {
      return passed(
        name,
        wasNeeded ? 'every subscription of this check has ended' : 'nothing was left to end',
      )
    }
    const left = [
      ...[...this.#ids].map((id) => `subscription ${id}`),
      ...(this.#lostCreates.size > 0 ? ['a subscription whose ID is not known'] : []),
    ]
    return failed(
      name,
      `${left.join(' and ')} may still exist; the callback URL ends with ${this.mark}`,
      this.#ids.size > 0
        ? 'Unsubscribe by the ID when the service answers again'
        : 'Create the subscription again with recreateIfExists when the service answers again, and unsubscribe by its ID',
    )
  }

  /** The IDs of subscriptions that may still exist. */
  get leftBehind(): readonly number[] {
    return [...this.#ids]
  }

  get #isAnythingLeft(): boolean {
    return this.#ids.size + this.#lostCreates.size > 0
  }

  /** The newest first, because a service may answer 404 for those that were replaced. */
  async #endKnown(): Promise<void> {
    for (const id of [...this.#ids].reverse()) await this.#unsubscribe(id)
  }

  async #create(
    notificationTypes: readonly NotificationType[],
    recreateIfExists: boolean,
  ): Promise<Observation> {
    const { client, callbackUrl, username, parameters } = this.#options
    try {
      const result = await client.tryCreateSubscription({
        notificationTypes: [...notificationTypes],
        usernames: [username],
        callbackUrl: `${callbackUrl}${callbackUrl.includes('?') ? '&' : '?'}${this.mark}`,
        parameters,
        recreateIfExists,
      })
      if (!result.created) return { status: 409 }
      const { subscriptionId } = result
      this.#lostCreates.delete(notificationTypes)
      this.#ids.add(subscriptionId)
      this.#current = subscriptionId
      return { status: this.#options.statusLog.lastStatus, subscriptionId }
    } catch (error) {
      if (mayHaveTakenEffect(error)) this.#lostCreates.add(notificationTypes)
      return observationOf(error)
    }
  }

  #update(subscriptionId: number | undefined): Promise<Observation> | undefined {
    if (subscriptionId === undefined) return undefined
    const changes = { parameters: { check: 'updated' } }
    return this.#observe(() => this.#options.client.updateSubscriptionParameters(subscriptionId, changes))
  }

  #unsubscribe(subscriptionId: number | undefined): Promise<Observation> | undefined {
    if (subscriptionId === undefined) return undefined
    return this.#observe(async () => {
      try {
        await this.#options.client.unsubscribe(subscriptionId)
        this.#hasUnsubscribed = true
        this.#ids.delete(subscriptionId)
      } catch (error) {
        if (mayHaveTakenEffect(error)) this.#maybeEnded.add(subscriptionId)
        if (error instanceof SubscriptionNotFoundError) {
          // A path that does not exist gives a 404, too. So a 404 counts only once unsubscribing has worked.
          this.#hasUnsubscribed ||= this.#maybeEnded.has(subscriptionId)
          if (this.#hasUnsubscribed) this.#ids.delete(subscriptionId)
        }
        throw error
      }
    })
  }

  async #observe(call: () => Promise<void>): Promise<Observation> {
    try {
      await call()
      return { status: this.#options.statusLog.lastStatus }
    } catch (error) {
      return observationOf(error)
    }
  }
}

function stepOf({ name, documented, source, holds }: Behaviour, observation: Observation): Step {
  const note = source === 'public developer pages' ? ' †' : ''
  if ('problem' in observation) {
    const finding: Finding = { documented, source, result: 'unknown' }
    return failed(name, `not known: ${observation.problem}`, 'Run the check again', finding)
  }
  const { status, subscriptionId } = observation
  const answered = `answered ${status}${subscriptionId === undefined ? '' : ` with subscription ${subscriptionId}`}`
  if (holds(observation)) {
    const finding: Finding = { documented, source, result: 'holds', status }
    return passed(name, `${answered}, as documented${note}`, finding)
  }
  const finding: Finding = { documented, source, result: 'differs', status }
  const next =
    source === 'public developer pages'
      ? 'If the service has another method or path for this, name it in the option `routes` of the client'
      : 'The client relies on the documented answer: ask the operator of the service'
  return failed(name, `${answered}, but ${documented} is documented${note}`, next, finding)
}

function observationOf(error: unknown): Observation {
  if (!(error instanceof NotificationError)) throw error
  if (error instanceof ApiError) {
    const { status } = error
    // Statuses about credentials or load do not show how the service treats subscriptions.
    const isAboutRules = status < 500 && ![401, 403, 408, 429].includes(status)
    return isAboutRules ? { status } : { problem: `the service answered ${status}` }
  }
  if (error instanceof TokenRequestError) return { problem: `the token endpoint answered ${error.status}` }
  if (error instanceof ResponseValidationError) {
    return { problem: `the body of the answer with status ${error.status} cannot be used` }
  }
  if (error instanceof OutcomeUnknownError && error.cause instanceof NotificationError) {
    return observationOf(error.cause)
  }
  return { problem: error.message }
}

/** Whether a call that failed may have taken effect. */
function mayHaveTakenEffect(error: unknown): boolean {
  if (error instanceof ConnectionError) return error.requestSent
  if (error instanceof ApiError) return isOutcomeOpen(error.status)
  return !(error instanceof TokenRequestError || error instanceof InvalidRequestError)
}
