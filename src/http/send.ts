/** One call: its requests with authorization, repeats and backoff, all within one deadline. */
import { type ConnectionError, type NotificationError, TimeoutError } from '../errors.js'
import { callLogged, type Log } from '../logger.js'
import { isBusy, isOutcomeOpen, isUnauthorized } from '../shared/statuses.js'
import { messageIn, worded } from '../shared/words.js'
import { Answer } from './answer.js'
import { toConnectionError } from './connection-error.js'
import { Deadline, timeoutReasonIn, type Waiting } from './deadline.js'
import type { Address, Transport, UnauthorizedRequest } from './exchange.js'
import { delayBeforeRepeat, type RetryPolicy } from './retry.js'
import type { Semaphore } from './semaphore.js'

export interface Authorization {
  /** The value of the header `Authorization`. */
  readonly header?: string
  /** Other headers, such as those of the caller's `auth.clientAuthentication`. */
  readonly headers?: Readonly<Record<string, string>>
  /** The body, if it is part of the authorization. */
  readonly body?: string
  /** Texts that no error or log line may show. */
  readonly secrets: readonly string[]
  readonly accessToken?: string
  /** When the token expires, on the wall clock; missing if the token had expired on arrival. */
  readonly expiresAt?: number | undefined
}

export interface Authorizer {
  /** The authorization for the next request; no promise if it is available at once. */
  authorize(deadline: Deadline): Authorization | Promise<Authorization>
  /** After a 401: another authorization to repeat the request with, or `undefined` if repeating would not help. */
  reauthorize?(rejected: Authorization, deadline: Deadline): Promise<Authorization | undefined>
  /** The held access token, as an existing promise; `undefined` if the caller must wait for a token. */
  heldAccessToken?(): Promise<string> | undefined
}

/** The service's last answer to a call, a success or not. */
export interface ResponseSummary {
  readonly status: number
  /** The service's id of the request, such as `x-request-id` (docs/errors.md, Request ids). */
  readonly requestId: string | undefined
  /** The number of requests to the service, repeats included. */
  readonly attempts: number
  /** How long the call took until this answer, token and retries included, in milliseconds. */
  readonly durationMs: number
}

export interface CallSettings {
  /** What is called, e.g. a method's name: the first words of a `TimeoutError`. */
  readonly method: string
  readonly timeoutMs: number
  /** Aborting it ends the call with the signal's own reason. */
  readonly signal?: AbortSignal | undefined
  readonly onResponse?: ((response: ResponseSummary) => void) | undefined
  readonly authorizer: Authorizer
  readonly transport: Transport
  /** Limits how many requests are sent at once. Default: no limit. */
  readonly connections?: Semaphore | undefined
  readonly retry: RetryPolicy
  readonly log: Log
}

/** The headers of every request. Not spread: undici is slower with spread objects. */
function ownHeaders(): Record<string, string> {
  return {
    // Every answer with a body is JSON (docs/service.md, Endpoints). No transport here decompresses a body.
    accept: 'application/json',
    'accept-encoding': 'identity',
    // Some firewalls refuse requests without a user agent. Has the version of package.json.
    'user-agent': 'notification-subscriber/0.6.0',
  }
}

/** The headers that the client sets: a caller cannot set them. */
export const requestHeaderNames = [...Object.keys(ownHeaders()), 'authorization', 'content-type']

/** A call in flight; only {@link withCall} makes one. */
export type Call = Readonly<RunningCall>

/** `run` sends the requests, `onEnd` gets the ended call. @throws what `run` throws, or the reason of an aborted signal */
export async function withCall<Result>(
  settings: CallSettings,
  run: (call: Call) => Promise<Result>,
  onEnd?: (call: Call) => void,
): Promise<Result> {
  const call = new RunningCall(settings)
  try {
    return await run(call)
  } finally {
    call.deadline.end()
    onEnd?.(call)
  }
}

class RunningCall {
  readonly method: string
  readonly deadline: Deadline
  /** Number of requests, repeats included, token requests not. */
  attempts = 0
  attemptedSince = 0
  /** Number of attempts that were sent and whose outcome is unknown. */
  lostAttempts = 0
  /** How many lost attempts were answered 503 or 408. */
  busyAttempts = 0
  /** Of the last attempt's answer. */
  status: number | undefined
  /** The last attempt's failure, if another attempt follows. */
  lastFailure: NotificationError | undefined
  readonly #beganSince = performance.now()
  /** Also those of earlier attempts, whose secrets a server may repeat later. */
  readonly #authorizations = new Set<Authorization>()
  #address: Address | undefined

  constructor(private readonly settings: CallSettings) {
    const { method, signal, timeoutMs } = settings
    this.method = method
    this.deadline = new Deadline(timeoutMs, signal, (waiting) => this.#timeoutError(waiting))
  }

  /**
   * Sends a request, and repeats it according to the options. The caller interprets the answer's status.
   *
   * @param errorOf - makes the error for an answer with an error status: the `cause` if a later attempt runs out of time
   * @throws `ConnectionError` when the last attempt got no answer, what the authorizer throws, or the deadline's reason
   */
  async send(request: UnauthorizedRequest, errorOf: (answer: Answer) => NotificationError): Promise<Answer> {
    const { authorizer, log, retry } = this.settings
    const { address, isRepeatable, method } = request
    const url = address.shown
    this.#address = address
    let authorization = await authorizer.authorize(this.deadline)
    let wasRejected = false
    let failures = 0
    for (;;) {
      const { outcome, sentWith } = await this.#attempt(request, authorization)

      if ('status' in outcome && isUnauthorized(outcome.status)) {
        const hasExpired = sentWith.expiresAt !== undefined && Date.now() >= sentWith.expiresAt
        const mayRepeat = hasExpired || !wasRejected
        const another = mayRepeat ? await authorizer.reauthorize?.(sentWith, this.deadline) : undefined
        wasRejected ||= !hasExpired
        if (another !== undefined) {
          log('info', { event: 'token.rejected', method, url }, 'Access token rejected; repeating')
          authorization = another
          continue
        }
      }

      failures += 1
      const delayMs = delayBeforeRepeat(outcome, failures, isRepeatable, retry)
      if (delayMs === undefined || performance.now() + delayMs >= this.deadline.endsFrom) {
        if (!('status' in outcome)) throw outcome
        this.#report(outcome)
        return outcome
      }
      const fields = { method, url, attempt: this.attempts, delayMs: Math.round(delayMs) }
      log('info', { event: 'request.retried', ...fields }, 'Request will be repeated')
      this.lastFailure = 'status' in outcome ? errorOf(outcome) : outcome
      await this.deadline.sleep(delayMs)
      authorization = await authorizer.authorize(this.deadline)
    }
  }

  /** Sends once, as soon as a connection is free. After a wait, takes the authorization again, which may have expired. */
  async #attempt(
    request: UnauthorizedRequest,
    authorization: Authorization,
  ): Promise<{ outcome: Answer | ConnectionError; sentWith: Authorization }> {
    const { authorizer, connections } = this.settings
    const hasWaited = await connections?.acquire(this.deadline)
    try {
      const sentWith = hasWaited ? await authorizer.authorize(this.deadline) : authorization
      return { outcome: await this.#exchange(request, sentWith), sentWith }
    } finally {
      connections?.release()
    }
  }

  /** @throws the deadline's reason, or an error of this package that is not about the network */
  async #exchange(
    request: UnauthorizedRequest,
    authorization: Authorization,
  ): Promise<Answer | ConnectionError> {
    const { log, transport } = this.settings
    const { address, method } = request
    const body = authorization.body ?? request.body
    this.attempts += 1
    this.attemptedSince = performance.now()
    this.status = undefined
    this.deadline.checkClock()
    if (this.deadline.aborted) throw this.deadline.reason
    this.#authorizations.add(authorization)
    const secrets = () => [request, ...this.#authorizations].flatMap((each) => each.secrets)
    const headers = headersOf(request, authorization, body)
    const outcome = await transport.send({ method, address, headers, body }, this.deadline)
    const durationMs = Math.round(performance.now() - this.attemptedSince)
    const fields = { method, url: address.shown, attempt: this.attempts, durationMs }
    if ('status' in outcome) {
      const answer = new Answer(outcome, request, secrets)
      const { status } = answer
      this.status = status
      if (isOutcomeOpen(status)) this.lostAttempts += 1
      if (isOutcomeOpen(status) && isBusy(status)) this.busyAttempts += 1
      // A function, so that the id is searched for secrets only if a logger shows it. A getter takes 10 µs more.
      const requestId = () => answer.requestId
      log('debug', { event: 'request.answered', ...fields, status, requestId }, 'Request answered')
      return answer
    }
    const { error, requestSent } = outcome
    if (requestSent) this.lostAttempts += 1
    if (this.deadline.aborted) throw this.deadline.reason
    const details = { host: address.host, secrets: secrets() }
    const failure = toConnectionError(error, details, requestSent)
    log('warn', { event: 'request.failed', ...fields, err: failure }, 'Request got no answer')
    return failure
  }

  /** Errors of the caller's `onResponse` are logged: they must not hide the call's result. */
  #report(last: Answer): void {
    const { log, onResponse, method } = this.settings
    if (onResponse === undefined) return
    const durationMs = Math.round(performance.now() - this.#beganSince)
    void callLogged(log, { event: 'on-response.failed', method }, 'onResponse failed', () =>
      onResponse({ status: last.status, requestId: last.requestId, attempts: this.attempts, durationMs }),
    )
  }

  /** @param waiting - `undefined` if our own work kept the process busy: the next request was not sent */
  #timeoutError(waiting: Waiting | undefined): TimeoutError {
    const { method, transport } = this.settings
    const { timeoutMs } = this.deadline
    const phase = waiting?.phase ?? 'connection'
    const reason = waiting?.timeoutReason?.() ?? {
      words: timeoutReasonIn(phase, this.#address ?? {}, transport.proxy),
      lastFailure: this.lastFailure,
    }
    const cause = reason.lastFailure
    return worded(
      (view) =>
        `${method} took longer than ${Math.round(timeoutMs)} ms: ${reason.words(view)}` +
        (cause === undefined ? '' : ` The last attempt before that failed: ${messageIn(view, cause)}`),
      (message) => new TimeoutError(message, { timeoutMs, phase }, cause && { cause }),
    )
  }
}

function headersOf(
  { headers }: UnauthorizedRequest,
  { header, headers: further }: Authorization,
  body: string | undefined,
): Record<string, string> {
  const own = ownHeaders()
  if (header !== undefined) own.authorization = header
  if (body !== undefined) own['content-type'] = 'application/x-www-form-urlencoded'
  return headers === undefined && further === undefined ? own : { ...headers, ...further, ...own }
}
