/** The client of one virtual process: `NotificationClient` without repeats, on an unreliable network to the model's service. */
import {
  ApiError,
  type CallOptions,
  ConnectionError,
  type CreateSubscriptionInput,
  type CreateSubscriptionResult,
  type NotificationError,
  OutcomeUnknownError,
  ResponseValidationError,
  SubscriptionConflictError,
  SubscriptionNotFoundError,
  TimeoutError,
  TokenRequestError,
  type UpdateSubscriptionParametersInput,
} from 'notification-subscriber'
import type { KeeperClient } from 'notification-subscriber/keeper'
import type { ModelService } from './service.js'
import type { VirtualProcess } from './virtual-process.js'

export interface NetworkOutcome {
  /**
   * - `status`: the service answers with an error; `garbled`: it does what it is asked, and the answer cannot be read
   * - `reset`: the connection breaks before the answer; `late`: the answer comes late or never
   * - `unreachable`: no connection is made; `no-token`: the authorization server refuses the credentials
   */
  readonly kind: 'answered' | 'status' | 'garbled' | 'reset' | 'late' | 'unreachable' | 'no-token'
  readonly status?: number
  readonly retryAfterMs?: number | undefined
  /** When the request takes effect, perhaps long after the client gave up; `undefined`: never. */
  readonly effectAfterMs?: number | undefined
  readonly answerAfterMs?: number | undefined
}

/** Less than the two minutes after which another process takes over a claim. */
export const latestEffectMs = 105_000

export const unknownStatuses: readonly number[] = [500, 502, 503, 504, 520]

/** A request as the service and the network saw it. */
export interface SentRequest {
  readonly atMs: number
  readonly process: VirtualProcess
  readonly kind: 'create' | 'recreate' | 'update' | 'unsubscribe'
  readonly username: string | undefined
  readonly subscriptionId: number | undefined
  /** What the service did, even if the answer was lost. */
  status?: number
  created?: number | undefined
  /** Whether its sender still waits for the answer. */
  isAwaited: boolean
  /** Whether its sender heard for certain whether it took effect. */
  isAnswered: boolean
}

/** What the client asks of its world. */
export interface Network {
  readonly service: ModelService
  /** Whether update and unsubscribe have other routes than the keeper's client. */
  readonly hasWrongRoutes: boolean
  /** What update and unsubscribe answer for an id that no active subscription has. */
  readonly statusOfEnded: number
  send(request: SentRequest): NetworkOutcome
  latencyMs(): number
}

interface Answer {
  readonly status: number
  readonly created?: number | undefined
  readonly retryAfterMs?: number | undefined
}

type Result = Answer | { readonly error: NotificationError; readonly isOutcomeUnknown: boolean }

export class ModelClient implements KeeperClient {
  /** Routes that have answered 2xx. */
  readonly #proven = new Set<'update' | 'unsubscribe'>()

  constructor(
    private readonly network: Network,
    private readonly process: VirtualProcess,
  ) {}

  async tryCreateSubscription(
    input: CreateSubscriptionInput,
    options?: CallOptions,
  ): Promise<CreateSubscriptionResult> {
    const recreateIfExists = input.recreateIfExists === true
    const { notificationTypes, usernames } = input
    const request = { notificationTypes, usernames, callbackUrl: String(input.callbackUrl), recreateIfExists }
    const parameters = { ...input.parameters, ...input.headers }
    const kind = recreateIfExists ? 'recreate' : 'create'
    const result = await this.#send(
      { kind, username: usernames[0], subscriptionId: undefined },
      options,
      () => {
        const answer = this.network.service.create({ ...request, parameters }, 'keeper')
        return answer.status === 201 ? { status: 201, created: answer.id } : answer
      },
    )
    const isUnknown = 'error' in result ? result.isOutcomeUnknown : unknownStatuses.includes(result.status)
    if (isUnknown) throw new OutcomeUnknownError('The subscription may exist.', { request })
    if ('error' in result) throw result.error
    const { status, created } = result
    if (status === 409) {
      const reason = recreateIfExists ? 'partial-overlap' : 'duplicate-or-overlap'
      const details = { status, body: '', reason, request } as const
      return { created: false, conflict: new SubscriptionConflictError('It overlaps another one.', details) }
    }
    if (status !== 201) throw apiError(result)
    if (created === undefined) {
      const issues = [{ path: ['subscription_id'], message: 'expected int' }]
      throw new ResponseValidationError('The body has no id.', { status, body: '<html>', issues })
    }
    return { created: true, subscriptionId: created }
  }

  async unsubscribe(id: number, options?: CallOptions): Promise<void> {
    await this.#sendById('unsubscribe', id, options, () => this.network.service.end(id, 'keeper'))
  }

  async updateSubscriptionParameters(
    id: number,
    input: UpdateSubscriptionParametersInput,
    options?: CallOptions,
  ): Promise<void> {
    const values = { ...input.parameters, ...input.headers }
    await this.#sendById('update', id, options, () => this.network.service.update(id, values))
  }

  async #sendById(
    kind: 'update' | 'unsubscribe',
    subscriptionId: number,
    options: CallOptions | undefined,
    perform: () => number,
  ): Promise<void> {
    const username = this.network.service.userOf(subscriptionId)
    const statusOf = (status: number) => (status === 404 ? this.network.statusOfEnded : status)
    const result = await this.#send({ kind, username, subscriptionId }, options, () => ({
      status: this.network.hasWrongRoutes ? 404 : statusOf(perform()),
    }))
    if ('error' in result) throw result.error
    const { status } = result
    if (status === 404)
      throw new SubscriptionNotFoundError('Not found.', {
        status,
        body: '',
        subscriptionId,
        provesEnded: this.#proven.has(kind),
      })
    if (status < 200 || status > 299) throw apiError(result)
    this.#proven.add(kind)
  }

  /** The request leaves, takes effect, and its answer comes back: each if the network lets it. */
  async #send(
    operation: Pick<SentRequest, 'kind' | 'username' | 'subscriptionId'>,
    { retry, signal, timeoutMs = 30_000 }: CallOptions = {},
    perform: () => Answer,
  ): Promise<Result> {
    if (retry !== false)
      throw new Error('The keeper repeats failed calls itself, so it calls with `retry: false`.')
    const process = this.process
    return process.operate(() => {
      const atMs = process.time.nowMs
      const request: SentRequest = { atMs, process, ...operation, isAwaited: true, isAnswered: false }
      const outcome = this.network.send(request)
      const latencyMs = this.network.latencyMs()
      const isPerformed = outcome.kind === 'answered' || outcome.kind === 'garbled'
      const effectAfterMs = isPerformed ? latencyMs / 2 : outcome.effectAfterMs
      let answer: Answer = { status: 0 }
      if (effectAfterMs !== undefined) {
        process.time.schedule(effectAfterMs, () => {
          answer = perform()
          request.status = answer.status
          request.created = answer.created
          return false
        })
      }
      const answerMs =
        outcome.kind === 'late' ? (outcome.answerAfterMs ?? Number.POSITIVE_INFINITY) : latencyMs
      return new Promise<Result>((resolve, reject) => {
        let cancel = () => {}
        const finish = (result: Result) => {
          cancel()
          signal?.removeEventListener('abort', abort)
          request.isAwaited = false
          request.isAnswered = !('error' in result ? result.isOutcomeUnknown : isUnknown(result))
          resolve(result)
        }
        cancel = process.setTimer(timeoutMs, () => {
          const error = new TimeoutError(`No answer in ${timeoutMs} ms.`, { timeoutMs, phase: 'answer' })
          finish(failed(error, true))
        })
        const abort = () => {
          cancel()
          request.isAwaited = false
          reject(signal?.reason)
        }
        signal?.addEventListener('abort', abort)
        if (answerMs < timeoutMs) process.receive(answerMs, () => finish(resultOf(outcome, answer)))
      })
    })
  }
}

function resultOf(outcome: NetworkOutcome, answer: Answer): Result {
  switch (outcome.kind) {
    case 'answered':
    case 'late':
      return answer
    case 'garbled':
      return answer.status === 201 ? { status: 201 } : answer
    case 'status':
      return { status: outcome.status ?? 0, retryAfterMs: outcome.retryAfterMs }
    case 'reset':
      return failed(new ConnectionError('The connection broke.', { requestSent: true }), true)
    case 'unreachable':
      return failed(new ConnectionError('No connection.', { requestSent: false }), false)
    case 'no-token':
      return failed(new TokenRequestError('Refused.', { status: 401, error: 'invalid_client' }), false)
  }
}

function failed(error: NotificationError, isOutcomeUnknown: boolean): Result {
  return { error, isOutcomeUnknown }
}

/** A 201 without an id, too, leaves open what was created. */
function isUnknown({ status, created }: Answer): boolean {
  return unknownStatuses.includes(status) || (status === 201 && created === undefined)
}

function apiError({ status, retryAfterMs }: Answer): ApiError {
  return new ApiError(`The service answered ${status}.`, { status, body: '', retryAfterMs })
}
