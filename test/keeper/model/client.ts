/**
 * The client of one virtual process: the three subscription methods of `NotificationClient`, with its attempts, its time
 * limit and its errors, on the model of the service.
 */
import {
  ApiError,
  type CallOptions,
  ConnectionError,
  type CreateSubscriptionInput,
  type CreateSubscriptionResult,
  NotificationError,
  OutcomeUnknownError,
  ResponseValidationError,
  SubscriptionConflictError,
  SubscriptionNotFoundError,
  TimeoutError,
  TokenRequestError,
  type UpdateSubscriptionParametersInput,
} from 'notification-subscriber'
import type { KeeperClient } from 'notification-subscriber/keeper'
import { isDefinite, type NetworkOutcome, unknownStatuses } from './network-outcomes.js'
import type { CreateAnswer, ModelService } from './service.js'
import type { VirtualProcess } from './virtual-process.js'

/** One attempt of a call, as the service and the network saw it. */
export interface SentRequest {
  readonly atMs: number
  readonly process: VirtualProcess
  readonly kind: 'create' | 'recreate' | 'update' | 'unsubscribe'
  /** Which attempt of its call it is: 1 for the first. */
  readonly attempt: number
  /** Whether it repeats one that was answered 401, with a new token. */
  readonly isReauthorized: boolean
  readonly username: string | undefined
  readonly subscriptionId: number | undefined
  readonly input: CreateSubscriptionInput | undefined
  /** Status of the effect that the request had on the service, even if its answer was lost. */
  effect?: number
  /** The id of the subscription that it created, even if its answer was lost. */
  created?: number | undefined
  /** When its sender heard whether it took effect. */
  answeredAtMs?: number
}

/** What the client asks of its world. */
export interface Network {
  readonly service: ModelService
  /** Called with each request as it is sent. */
  send(request: SentRequest): NetworkOutcome
  /** Called when a request has had its effect, which may be long after its sender gave up. */
  performed(request: SentRequest): void
  /** Called when the authorization server is asked for a new token after a 401. */
  tokenRequested(): void
  /** Called when calls begin and end. */
  callBegins(process: VirtualProcess, username: string | undefined): void
  callEnds(process: VirtualProcess, username: string | undefined): void
  /** How long a request and its answer travel. */
  latencyMs(): number
}

interface Answer {
  readonly status: number
  readonly created?: number
  readonly retryAfterMs?: number | undefined
}

/** What the service or the network made of an attempt. */
interface Attempt {
  readonly number: number
  readonly isReauthorized: boolean
  readonly sent: () => void
}

interface Operation {
  readonly kind: SentRequest['kind']
  readonly username: string | undefined
  readonly subscriptionId: number | undefined
  readonly input: CreateSubscriptionInput | undefined
  /** Whether the client repeats it after an answer that was lost. */
  readonly isRepeatable: boolean
  /** What the service does. */
  perform(): Answer
}

const never = new Promise<never>(() => {})

export class ModelClient implements KeeperClient {
  readonly #network: Network
  readonly #process: VirtualProcess

  constructor(network: Network, process: VirtualProcess) {
    this.#network = network
    this.#process = process
  }

  async tryCreateSubscription(
    input: CreateSubscriptionInput,
    options: CallOptions = {},
  ): Promise<CreateSubscriptionResult> {
    const recreateIfExists = input.recreateIfExists === true
    const request = {
      notificationTypes: [...input.notificationTypes],
      usernames: [...input.usernames],
      callbackUrl: String(input.callbackUrl),
      recreateIfExists,
    }
    const parameters = { ...input.parameters, ...input.headers }
    const progress = { lost: 0 }
    let answer: Answer
    try {
      answer = await this.#call(
        {
          kind: recreateIfExists ? 'recreate' : 'create',
          username: input.usernames[0],
          subscriptionId: undefined,
          input,
          isRepeatable: recreateIfExists,
          perform: () => answerOf(this.#network.service.create({ ...request, parameters }, 'keeper')),
        },
        options,
        progress,
      )
      if (answer.status === 201 && answer.created === undefined) {
        const issues = [{ path: ['subscription_id'], message: 'expected int' }]
        throw new ResponseValidationError('The body holds no usable subscription_id.', {
          status: 201,
          body: '<html>',
          issues,
          ...at,
        })
      }
      if (answer.status !== 201 && answer.status !== 409) throw apiError(answer)
    } catch (error) {
      if (progress.lost === 0 || !(error instanceof NotificationError)) throw error
      if (error instanceof ResponseValidationError) throw error
      throw new OutcomeUnknownError('The subscription may exist.', { request }, { cause: error })
    }
    if (answer.created !== undefined) return { created: true, subscriptionId: answer.created }
    const conflict = new SubscriptionConflictError('An existing subscription covers it.', {
      status: 409,
      body: '',
      reason: recreateIfExists ? 'partial-overlap' : 'duplicate-or-overlap',
      request,
      ...at,
    })
    return { created: false, conflict }
  }

  async unsubscribe(subscriptionId: number, options: CallOptions = {}): Promise<void> {
    const progress = { lost: 0 }
    const perform = () => ({ status: this.#network.service.unsubscribe(subscriptionId, 'keeper') })
    const answer = await this.#call(this.#ofId('unsubscribe', subscriptionId, perform), options, progress)
    if (answer.status === 404 && progress.lost > 0) return
    readAnswer(answer, subscriptionId)
  }

  async updateSubscriptionParameters(
    subscriptionId: number,
    input: UpdateSubscriptionParametersInput,
    options: CallOptions = {},
  ): Promise<void> {
    const values = { ...input.parameters, ...input.headers }
    const perform = () => ({ status: this.#network.service.update(subscriptionId, values) })
    const answer = await this.#call(this.#ofId('update', subscriptionId, perform), options, { lost: 0 })
    readAnswer(answer, subscriptionId)
  }

  #ofId(kind: 'update' | 'unsubscribe', subscriptionId: number, perform: () => Answer): Operation {
    const username = this.#network.service.subscriptions.find(({ id }) => id === subscriptionId)?.usernames[0]
    return { kind, username, subscriptionId, input: undefined, isRepeatable: true, perform }
  }

  async #call(operation: Operation, options: CallOptions, progress: { lost: number }): Promise<Answer> {
    const process = this.#process
    const timeoutMs = options.timeoutMs ?? 30_000
    if (options.signal?.aborted) throw options.signal.reason
    let isSent = false
    let cancelTimer = () => {}
    const deadline = new Promise<never>((_resolve, reject) => {
      cancelTimer = process.receive(timeoutMs, () => reject(timeoutError(timeoutMs)))
      options.signal?.addEventListener('abort', () => reject(options.signal?.reason), { once: true })
    })
    deadline.catch(() => {})
    this.#network.callBegins(process, operation.username)
    try {
      let isReauthorized = false
      for (let attempt = 1; ; attempt++) {
        isSent = false
        const attempted = this.#attempt(operation, {
          number: attempt,
          isReauthorized,
          sent: () => {
            isSent = true
          },
        })
        const outcome = await Promise.race([attempted, deadline]).catch((error: unknown) => {
          if (error instanceof ConnectionError) return error
          if (isSent) progress.lost++
          throw error
        })
        // Perhaps the token has expired: the client tries once with a new one, whatever `retry` says.
        if ('status' in outcome && outcome.status === 401 && !isReauthorized) {
          isReauthorized = true
          this.#network.tokenRequested()
          continue
        }
        const isLost =
          'requestSent' in outcome ? outcome.requestSent : unknownStatuses.includes(outcome.status)
        const isTurnedAway =
          'requestSent' in outcome ? !outcome.requestSent : [429, 503].includes(outcome.status)
        if (isLost) progress.lost++
        const isOver = isLost ? !operation.isRepeatable : !isTurnedAway
        if (isOver || attempt - Number(isReauthorized) >= attemptsIn(options)) {
          if (outcome instanceof ConnectionError) throw outcome
          return outcome
        }
        const delayMs = process.random() * 250 * 2 ** (attempt - 1)
        await Promise.race([process.after(delayMs, () => undefined), deadline])
      }
    } finally {
      cancelTimer()
      this.#network.callEnds(process, operation.username)
    }
  }

  /** The request leaves, takes effect, and its answer comes back: each if the network lets it. */
  #attempt(operation: Operation, { number, isReauthorized, sent }: Attempt): Promise<Answer> {
    const process = this.#process
    return process.operate<Promise<Answer>>(() => {
      const { kind, username, subscriptionId, input } = operation
      const request: SentRequest = {
        atMs: process.time.nowMs,
        process,
        kind,
        attempt: number,
        isReauthorized,
        username,
        subscriptionId,
        input,
      }
      const outcome = this.#network.send(request)
      const latencyMs = this.#network.latencyMs()
      let answer: Answer = { status: 0 }
      const takesEffectAfter = (delayMs: number | undefined) => {
        if (delayMs === undefined) return
        process.time.schedule(delayMs, () => {
          answer = operation.perform()
          request.effect = answer.status
          request.created = answer.created
          this.#network.performed(request)
          return false
        })
      }
      if (outcome.kind !== 'unreachable' && outcome.kind !== 'no-token') sent()
      const after = (delayMs: number, answerOf: () => Answer) =>
        process.after(delayMs, () => {
          if (isDefinite(outcome, answer.status)) request.answeredAtMs = process.time.nowMs
          return answerOf()
        })
      switch (outcome.kind) {
        case 'answered':
          takesEffectAfter(latencyMs / 2)
          return after(latencyMs, () => answer)
        case 'garbled':
          takesEffectAfter(latencyMs / 2)
          return after(latencyMs, () => garbled(answer))
        case 'status':
          takesEffectAfter(outcome.effectAfterMs)
          return after(latencyMs, () => ({ status: outcome.status, retryAfterMs: outcome.retryAfterMs }))
        case 'slow':
          takesEffectAfter(outcome.effectAfterMs)
          return after(outcome.answerAfterMs, () => answer)
        case 'silent':
          takesEffectAfter(outcome.effectAfterMs)
          return never
        case 'reset':
          takesEffectAfter(outcome.effectAfterMs)
          return after(latencyMs, () => {
            throw new ConnectionError('The connection broke.', { requestSent: true })
          })
        case 'unreachable':
          return after(latencyMs, () => {
            throw new ConnectionError('No connection.', { requestSent: false })
          })
        case 'no-token':
          return after(latencyMs, () => {
            throw new TokenRequestError('Refused.', { status: 401, error: 'invalid_client', ...at })
          })
      }
    }, never)
  }
}

const at = {}

function attemptsIn(options: CallOptions): number {
  const retry: unknown = Object(options).retry
  if (retry === false) return 1
  return Object(retry).maxAttempts ?? 3
}

function answerOf(answer: CreateAnswer): Answer {
  return answer.status === 201 ? { status: 201, created: answer.id } : { status: 409 }
}

function garbled(answer: Answer): Answer {
  return answer.status === 201 ? { status: 201 } : answer
}

/** @throws what the client throws after an update or an unsubscribe that was answered with an error. */
function readAnswer(answer: Answer, subscriptionId: number): void {
  const { status } = answer
  if (status >= 200 && status <= 299) return
  if (status !== 404) throw apiError(answer)
  throw new SubscriptionNotFoundError('No such subscription.', { status, body: '', subscriptionId, ...at })
}

function apiError({ status, retryAfterMs }: Answer): ApiError {
  return new ApiError(`The service answered ${status}.`, { status, body: '', retryAfterMs, ...at })
}

function timeoutError(timeoutMs: number): TimeoutError {
  return new TimeoutError(`The call took longer than ${timeoutMs} ms.`, { timeoutMs, phase: 'answer' })
}
