/** `check --lifecycle`: makes the calls of a subscription's life, compares the answers with docs/service.md, and cleans up. */
import { randomBytes } from 'node:crypto'
import { routeVariable } from '../../client/environment.js'
import type { NotificationClient } from '../../client/notification-client.js'
import type { CallOptions } from '../../client/options.js'
import { OutcomeUnknownError, ResponseValidationError, TokenRequestError } from '../../errors.js'
import type { NotificationType } from '../../notification-types.js'
import type { Operation } from '../../shared/routes.js'
import { isAboutRequest, isConflict, isCreated, isNotFound, isSuccess } from '../../shared/statuses.js'
import { wholeMessageOf } from '../../shared/text.js'
import { mayHaveTakenEffect } from '../../subscriptions/answer-errors.js'
import { madeBy, type TriedCall, tryCall } from './service.js'
import { type CheckStep, failed, passed, type StepResult, skipped } from './step.js'

export interface LifecycleOptions {
  /** Makes one attempt for each call, so that each step shows the first answer. */
  readonly client: NotificationClient
  readonly username: string
  readonly callbackUrl: string
  /** Sent as headers on callbacks: the receiver's secrets. */
  readonly parameters: Readonly<Record<string, string>>
  /** Asked before each step. */
  readonly isInterrupted: () => boolean
}

/** The answer to one call, or why it proves nothing about the service's rules. */
type Observation = ServiceAnswer | { readonly problem: string }

interface ServiceAnswer {
  readonly status: number
  readonly subscriptionId?: number
  /** What another call showed, if it contradicts the answer. */
  readonly contradiction?: string
}

interface Behaviour {
  readonly name: string
  readonly documented: string
  /** Default: the interface document. */
  readonly source?: typeof developerPages
  /** Which route may be wrong if the answer differs. */
  readonly operation?: Operation
  /** `undefined` if an earlier result makes the call useless. */
  readonly call: () => Promise<Observation> | undefined
  readonly holds: (status: number) => boolean
  /** Whether the next calls make sense after this answer. Default: they do. */
  readonly canGoOn?: () => boolean
}

const developerPages = 'public developer pages'
const conflict = { documented: '409', holds: isConflict } as const
const wanted: readonly NotificationType[] = ['behavioral']
const overlapping: readonly NotificationType[] = ['behavioral', 'call-score']

export class Lifecycle {
  /** The end of the callback URL: random, so that no other subscription conflicts or is replaced. */
  readonly mark = `check=${randomBytes(4).toString('hex')}`
  readonly #options: LifecycleOptions
  /** Subscriptions that were created and may still exist. */
  readonly #ids = new Set<number>()
  /** The types of creates and unsubscribes without an answer: each may have left a subscription with an unknown ID. */
  readonly #unanswered = new Set<readonly NotificationType[]>()
  /** What the unsubscribe route did so far: before it has worked, a 404 proves nothing. */
  #unsubscribing: 'untried' | 'works' | 'changes nothing' = 'untried'
  /** The newest subscription, and the subscription that it replaced. */
  #current: number | undefined
  #replaced: number | undefined
  /** A step shows the first answer; the clean-up repeats its calls. */
  #patience: CallOptions = {}

  constructor(options: LifecycleOptions) {
    this.#options = options
  }

  /** Makes the calls one after the other. The calls after an unclear answer are skipped. */
  async *run(): AsyncGenerator<CheckStep> {
    let obstacle: string | undefined
    for (const behaviour of this.#behaviours()) {
      if (this.#options.isInterrupted()) return
      const observation = obstacle === undefined ? await behaviour.call() : undefined
      if (observation === undefined) {
        const why = obstacle ?? 'not tried: no new subscription took the place of the first'
        yield { name: behaviour.name, ...skipped(why) }
        continue
      }
      yield { name: behaviour.name, ...resultOf(behaviour, observation) }
      if ('problem' in observation || behaviour.canGoOn?.() === false) {
        obstacle = `not tried after "${behaviour.name}"`
      }
    }
  }

  #behaviours(): readonly Behaviour[] {
    return [
      {
        name: 'Create',
        documented: '201 with the subscription ID',
        call: () => this.#create(wanted, false),
        holds: isCreated,
        canGoOn: () => this.#current !== undefined,
      },
      { name: 'Duplicate', ...conflict, call: () => this.#create(wanted, false) },
      { name: 'Overlap with recreateIfExists', ...conflict, call: () => this.#create(overlapping, true) },
      {
        name: 'Recreate',
        documented: '201 with a new subscription ID',
        call: () => this.#recreate(),
        holds: (status) => isCreated(status) && this.#replaced !== undefined,
      },
      {
        name: 'Update',
        documented: '2xx',
        source: developerPages,
        operation: 'update',
        call: () => this.#updateOnlyCurrent(),
        holds: isSuccess,
      },
      {
        name: 'Unsubscribe',
        documented: '204 or another 2xx',
        source: developerPages,
        operation: 'unsubscribe',
        call: () => this.#unsubscribeAndProve(),
        holds: isSuccess,
        canGoOn: () => this.#unsubscribing === 'works',
      },
      {
        name: 'Unsubscribe the replaced one',
        documented: '404',
        source: developerPages,
        call: () => (this.#replaced === undefined ? undefined : this.#unsubscribe(this.#replaced)),
        holds: isNotFound,
      },
    ]
  }

  async #recreate(): Promise<Observation> {
    const before = this.#current
    const observation = await this.#create(wanted, true)
    if (this.#current !== before) this.#replaced = before
    return observation
  }

  /** Updates the current subscription, and the replaced one: a route that ignores the id answers 2xx to both. */
  async #updateOnlyCurrent(): Promise<Observation> {
    const { client } = this.#options
    const update = (subscriptionId = 0) =>
      this.#observe((options) =>
        client.updateSubscriptionParameters(subscriptionId, { parameters: { check: 'updated' } }, options),
      )
    const answer = await update(this.#current)
    if ('problem' in answer || !isSuccess(answer.status) || this.#replaced === undefined) return answer
    const other = await update(this.#replaced)
    if ('problem' in other || !isSuccess(other.status)) return 'problem' in other ? other : answer
    return { ...answer, contradiction: `so is subscription ${this.#replaced}, which was replaced` }
  }

  /** Unsubscribes the current subscription, then creates it again: a 409 shows that it has not ended. */
  async #unsubscribeAndProve(): Promise<Observation> {
    const ended = this.#current ?? 0
    const answer = await this.#unsubscribe(ended)
    if ('problem' in answer || !isSuccess(answer.status)) return answer
    const proof = await this.#create(wanted, false)
    if ('problem' in proof) return proof
    if (!isConflict(proof.status)) return answer
    this.#unsubscribing = 'changes nothing'
    this.#ids.add(ended)
    return { ...answer, contradiction: `the subscription exists: creating it again is answered 409` }
  }

  /**
   * Ends every subscription of this check. If a call was not answered, creates its subscription again with
   * `recreateIfExists`, which returns the ID. The random callback URL protects other subscriptions.
   */
  async cleanUp(): Promise<StepResult> {
    if (!this.#isAnythingLeft) return passed('nothing was left to be unsubscribed')
    this.#patience = { timeoutMs: 30_000, retry: { maxAttempts: 5 } }
    await this.#endKnown()
    for (const types of this.#unanswered) await this.#create(types, true)
    await this.#endKnown()
    if (!this.#isAnythingLeft) return passed('every subscription of this check was unsubscribed')
    const left = [...this.#ids].map((id) => `subscription ${id}`)
    if (this.#unanswered.size > 0) left.push('a subscription whose ID is not known')
    const message = `${left.join(' and ')} may still exist; the callback URL ends with ${this.mark}`
    if (this.#ids.size > 0 && this.#unsubscribing !== 'works') {
      return failed(message, `Unsubscribe by the ID on the right route: ${settingOf('unsubscribe')}`)
    }
    const how = this.#ids.size > 0 ? '' : 'create the subscription again with recreateIfExists, and '
    return failed(message, `When the service answers again, ${how}unsubscribe by the ID`)
  }

  get leftBehind(): readonly number[] {
    return [...this.#ids]
  }

  get #isAnythingLeft(): boolean {
    return this.#ids.size + this.#unanswered.size > 0
  }

  /** The newest first, because the service answers 404 for replaced subscriptions. */
  async #endKnown(): Promise<void> {
    for (const id of [...this.#ids].reverse()) await this.#unsubscribe(id)
  }

  async #create(types: readonly NotificationType[], recreateIfExists: boolean): Promise<Observation> {
    const { client, callbackUrl, username, parameters } = this.#options
    const separator = callbackUrl.includes('?') ? '&' : '?'
    const input = {
      notificationTypes: types,
      usernames: [username],
      callbackUrl: `${callbackUrl}${separator}${this.mark}`,
      parameters,
      recreateIfExists,
    }
    let subscriptionId: number | undefined
    const observation = await this.#observe(async (options) => {
      const result = await client.tryCreateSubscription(input, options)
      if (result.created) subscriptionId = result.subscriptionId
    }, types)
    if (subscriptionId === undefined) return observation
    this.#unanswered.delete(types)
    this.#ids.add(subscriptionId)
    this.#current = subscriptionId
    return { ...observation, subscriptionId }
  }

  async #unsubscribe(subscriptionId: number): Promise<Observation> {
    const { client } = this.#options
    const observation = await this.#observe((options) => client.unsubscribe(subscriptionId, options), wanted)
    if ('problem' in observation) return observation
    const { status } = observation
    if (isSuccess(status) && this.#unsubscribing === 'untried') this.#unsubscribing = 'works'
    const hasEnded = isSuccess(status) || isNotFound(status)
    if (hasEnded && this.#unsubscribing === 'works') this.#ids.delete(subscriptionId)
    return observation
  }

  /** @param types - of the subscription that may exist, or not, if there is no answer */
  async #observe(
    call: (options: CallOptions) => Promise<void>,
    types?: readonly NotificationType[],
  ): Promise<Observation> {
    const outcome = await tryCall((options) => call({ ...options, ...this.#patience }))
    const { error } = outcome
    if (types !== undefined && error && mayHaveTakenEffect(error)) this.#unanswered.add(types)
    return observationOf(outcome)
  }
}

function resultOf({ holds, operation, ...documentation }: Behaviour, observation: Observation): StepResult {
  const { documented, source = 'interface document' } = documentation
  const note = source === developerPages ? ' †' : ''
  if ('problem' in observation) {
    const next = `Run the check again${operation ? `; if it stays so: ${settingOf(operation)}` : ''}`
    return failed(`not known: ${observation.problem}`, next, { documented, source, result: 'unknown' })
  }
  const { contradiction, status, subscriptionId } = observation
  const answered = `answered ${status}${subscriptionId === undefined ? '' : ` with subscription ${subscriptionId}`}`
  if (contradiction === undefined && holds(status)) {
    return passed(`${answered}, as documented${note}`, { documented, source, result: 'holds', status })
  }
  return failed(
    `${answered}, but ${contradiction ?? `${documented} is documented${note}`}`,
    operation
      ? `The service may have another route for this: ${settingOf(operation)}`
      : 'The client relies on the documented answer: ask the operator of the service',
    { documented, source, result: 'differs', status },
  )
}

function settingOf(operation: Operation): string {
  return `set ${routeVariable(operation)}, --${operation}-route or the option \`routes.${operation}\``
}

function observationOf({ status, intermediary, error }: TriedCall): Observation {
  if (error instanceof ResponseValidationError) {
    return { problem: `the body of the answer with status ${error.status} cannot be used` }
  }
  if (error instanceof TokenRequestError) return { problem: `the token endpoint answered ${error.status}` }
  if (status === undefined) {
    // Without the client's advice to create again, which the clean-up follows.
    const reason = error instanceof OutcomeUnknownError ? error.cause : error
    return { problem: wholeMessageOf(reason) }
  }
  if (intermediary !== undefined) return { problem: `${madeBy(intermediary)} answered ${status}` }
  return isAboutRequest(status) ? { status } : { problem: `the service answered ${status}` }
}
