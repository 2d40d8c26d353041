/**
 * Every error that this package throws (docs/errors.md). `instanceof` holds even when the ESM and the CommonJS build are
 * both loaded. No error ever contains a secret: no credentials, tokens or parameter values of the call.
 */

/** One problem with one value. */
export interface Issue {
  /** Where the value is, e.g. `['usernames', 0]`; empty for the whole input. */
  readonly path: readonly PropertyKey[]
  /** What is wrong with the value: the rest of a sentence that begins with the path. Your own schemas word theirs. */
  readonly message: string
}

/** The subscription that a failed call asked for. Parameters and headers are left out: their values may be secrets. */
export interface SubscriptionRequestSummary {
  readonly notificationTypes: readonly string[]
  readonly usernames: readonly string[]
  /** The callback URL that was asked for. Its query is shown as `?…`, because it may hold a secret. */
  readonly callbackUrl: string
  /** Whether an identical subscription was to be replaced. */
  readonly recreateIfExists: boolean
}

/** Fields of an error as its constructor takes them: those that may be undefined may be left out. */
type Fields<Class, Given extends keyof Class, Optional extends keyof Class = never> = Pick<Class, Given> &
  Partial<Pick<Class, Optional>>

/** Every error of this package as a union: `switch (error.code)` narrows it. */
export type AnyNotificationError =
  | ConfigurationError
  | InvalidRequestError
  | ClosedError
  | TokenRequestError
  | (ApiError & {
      /** The code of the class itself, not of one that extends it. */
      readonly code: 'API'
    })
  | SubscriptionConflictError
  | SubscriptionNotFoundError
  | ConnectionError
  | TimeoutError
  | OutcomeUnknownError
  | ResponseValidationError
  | InvalidDeliveryError
  | SpoolError

/** The `code` of every error of this package. */
export type NotificationErrorCode = AnyNotificationError['code']

/**
 * The root of every error of this package.
 *
 * `error instanceof NotificationError` narrows to {@link AnyNotificationError}, so a `switch` on `error.code`
 * then narrows to the single class.
 *
 * @example
 * ```ts
 * try {
 *   await client.createSubscription(input)
 * } catch (error) {
 *   if (!(error instanceof NotificationError)) throw error
 *   if (error.code === 'SUBSCRIPTION_CONFLICT') console.warn(error.reason, error.message)
 *   else console.error(error.code, error.message)
 * }
 * ```
 */
export abstract class NotificationError<Details extends object = object> extends Error {
  /** Which error this is: a literal in each class, so that `switch (error.code)` narrows. */
  abstract readonly code: NotificationErrorCode

  /**
   * @internal The class's name, equal in every loaded copy of this package (`ns` for its initials). Not under a computed
   * key: bundlers would keep the class even if nothing uses it.
   */
  protected static readonly nsErrorName: string = 'NotificationError'

  /** @param details - the fields of the class */
  constructor(message: string, details: Details, options?: { cause?: unknown }) {
    super(message, options)
    Object.assign(this, details)
    // The class's own name rather than the constructor's, which a minifier may rename. Not enumerable.
    Object.defineProperty(this, 'name', {
      value: new.target.nsErrorName,
      configurable: true,
      writable: true,
    })
  }

  /** True for instances of every loaded copy of this package. */
  static override [Symbol.hasInstance]<Class extends abstract new (...args: never) => unknown>(
    this: Class,
    value: unknown,
  ): value is typeof NotificationError extends Class ? AnyNotificationError : InstanceType<Class> {
    const name = ownName(this)
    // A user's subclass has no name of its own: the ordinary rule applies.
    return name ? isOfClass(value, name) : super[Symbol.hasInstance](value)
  }
}

function isOfClass(value: unknown, name: unknown): boolean {
  const prototype = Object.getPrototypeOf(Object(value))
  return prototype !== null && (ownName(prototype.constructor) === name || isOfClass(prototype, name))
}

function ownName(ctor: unknown): unknown {
  return typeof ctor === 'function' && Object.getOwnPropertyDescriptor(ctor, 'nsErrorName')?.value
}

/**
 * The options of a client, keeper, receiver, parser, spool, store or emulator cannot work: they are wrong, missing or
 * contradictory, or need a file, a free port or a package that does not exist. `issues` lists every problem; nothing was
 * sent.
 */
export class ConfigurationError extends NotificationError<Fields<ConfigurationError, 'issues'>> {
  /** @internal */ protected static override readonly nsErrorName = 'ConfigurationError'
  override readonly code = 'CONFIGURATION'
  /** Every problem, with its path in the options or the name of its environment variable. */
  declare readonly issues: readonly Issue[]
}

/**
 * The arguments of a call cannot be sent: `issues` lists every problem with its path. Nothing was sent, not even a
 * token request.
 */
export class InvalidRequestError extends NotificationError<Fields<InvalidRequestError, 'issues'>> {
  /** @internal */ protected static override readonly nsErrorName = 'InvalidRequestError'
  override readonly code = 'INVALID_REQUEST'
  /** Every problem, with its path in the argument. */
  declare readonly issues: readonly Issue[]
}

/** The client, or the spool, was closed before the call: nothing was sent or kept. Close it later, or make a new one. */
export class ClosedError extends NotificationError {
  /** @internal */ protected static override readonly nsErrorName = 'ClosedError'
  override readonly code = 'CLOSED'

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, {}, options)
  }
}

/**
 * The authorization server refused to issue an access token (RFC 6749 section 5.2). Usually the client ID, the secret,
 * their encoding or the domain is wrong. No subscription call was made.
 */
export class TokenRequestError extends NotificationError<
  Fields<
    TokenRequestError,
    'status',
    'url' | 'body' | 'error' | 'errorDescription' | 'intermediary' | 'retryAfterMs' | 'requestId'
  >
> {
  /** @internal */ protected static override readonly nsErrorName = 'TokenRequestError'
  override readonly code = 'TOKEN_REQUEST'
  declare readonly status: number
  /** Address of the token endpoint. */
  declare readonly url: string | undefined
  /** The answer's body as text, at most 64 KiB; replaced if credentials or tokens are in it. */
  declare readonly body: string | undefined
  /** OAuth error code, e.g. `invalid_client`. */
  declare readonly error: string | undefined
  /** The server's reason, as text for people. */
  declare readonly errorDescription: string | undefined
  /** What made the answer instead of the authorization server, as in {@link ApiError}. */
  declare readonly intermediary: string | undefined
  /** How long the server asks to wait (`Retry-After`), in milliseconds. */
  declare readonly retryAfterMs: number | undefined
  /** The server's id of this request, such as `x-request-id` (docs/errors.md, Request ids). */
  declare readonly requestId: string | undefined
}

/**
 * The service answered a subscription call with an error status, or something in between answered with any status (see
 * `intermediary`). The message has the address and the first 300 characters of the answer. The call had no effect, unless
 * the message says that it may have had one: after a 5xx other than 501, 505 and 511, and after an earlier attempt whose
 * answer was lost.
 * 401 means that the credentials are not accepted, 403 that this is not permitted, 429 and 503 that the service is busy:
 * `retryAfterMs` says for how long, if the service sent `Retry-After`.
 */
export class ApiError<Further extends object = object> extends NotificationError<
  Fields<ApiError, 'status' | 'body', 'url' | 'intermediary' | 'retryAfterMs' | 'requestId'> & Further
> {
  /** @internal */ protected static override readonly nsErrorName: string = 'ApiError'
  /** `API` in this class itself, another literal in each class that extends it. */
  override readonly code: 'API' | 'SUBSCRIPTION_CONFLICT' | 'SUBSCRIPTION_NOT_FOUND' = 'API'
  declare readonly status: number
  /** The address that answered, without its query. */
  declare readonly url: string | undefined
  /** The answer's body as text, at most 64 KiB; replaced if credentials or parameter values are in it. */
  declare readonly body: string
  /**
   * What made the answer instead of the service, e.g. `nginx` (docs/errors.md, Answers of intermediaries): a 404 or 409
   * then proves nothing about subscriptions, a 401 or 403 nothing about the credentials. `undefined`: no mark was found.
   */
  declare readonly intermediary: string | undefined
  /** How long the service asks to wait (`Retry-After`), in milliseconds. */
  declare readonly retryAfterMs: number | undefined
  /** The service's id of this request, such as `x-request-id` (docs/errors.md, Request ids). */
  declare readonly requestId: string | undefined
}

/**
 * 409 on create: a subscription at the same callback URL covers some or all of the users and types
 * (docs/service.md, States). Nothing was created or deleted; the message says what to do next.
 */
export class SubscriptionConflictError extends ApiError<
  Fields<SubscriptionConflictError, 'reason' | 'request'>
> {
  /** @internal */ protected static override readonly nsErrorName = 'SubscriptionConflictError'
  override readonly code = 'SUBSCRIPTION_CONFLICT'
  /**
   * What kind of conflict it can be (docs/service.md, States).
   *
   * - `partial-overlap`: an existing subscription shares some, but not all, users or types: `recreateIfExists` cannot
   *   replace it.
   * - `duplicate-or-overlap`: `recreateIfExists` was not set. Without it the service answers 409 both to a duplicate
   *   and to a partial overlap.
   */
  declare readonly reason: 'partial-overlap' | 'duplicate-or-overlap'
  /** What was asked for, without parameters and headers. */
  declare readonly request: SubscriptionRequestSummary
}

/**
 * 404 or 410 on unsubscribe or update, which has two readings. Either no active subscription has this id: it was
 * unsubscribed before, replaced by `recreateIfExists`, or ended by the service after three failed callbacks in a row. Or
 * the service has another route for this call, which its interface document leaves open: then the subscription is
 * untouched, and the option `routes` names the right route. `provesEnded` distinguishes them.
 */
export class SubscriptionNotFoundError extends ApiError<
  Fields<SubscriptionNotFoundError, 'subscriptionId' | 'provesEnded'>
> {
  /** @internal */ protected static override readonly nsErrorName = 'SubscriptionNotFoundError'
  override readonly code = 'SUBSCRIPTION_NOT_FOUND'
  /** The identifier that the call was made with. */
  declare readonly subscriptionId: number
  /**
   * Whether no active subscription has this id: the client has had a 2xx of this route before. `false`: the route may be
   * wrong, so the answer proves nothing.
   */
  declare readonly provesEnded: boolean
}

/**
 * The network failed: no connection was made, or a connection broke. `requestSent` says whether the server may have seen
 * the request; after `false` repeating is safe. `cause` has the message and `code` of the network's error.
 */
export class ConnectionError extends NotificationError<Fields<ConnectionError, 'requestSent'>> {
  /** @internal */ protected static override readonly nsErrorName = 'ConnectionError'
  override readonly code = 'CONNECTION'
  /** Whether the server may have seen the request. */
  declare readonly requestSent: boolean
}

/**
 * The call took longer than `timeoutMs`, token and retries included. Repeating the call is safe. `cause` is the error of
 * the last failed attempt, if there was one.
 */
export class TimeoutError extends NotificationError<Fields<TimeoutError, 'timeoutMs' | 'phase'>> {
  /** @internal */ protected static override readonly nsErrorName = 'TimeoutError'
  override readonly code = 'TIMEOUT'
  /** The limit that was exceeded, in milliseconds. */
  declare readonly timeoutMs: number
  /**
   * What the call was waiting for when its time limit ended.
   *
   * - `connection`: none could be made, or all of the client's connections were busy. This attempt was not sent.
   * - `token`: an access token.
   * - `answer`: the answer to a request that was, or may have been, sent.
   * - `backoff`: the next attempt, after one that failed.
   */
  declare readonly phase: 'connection' | 'token' | 'answer' | 'backoff'
}

/**
 * A create was sent, and its answer was lost, or proves nothing (502, or a 409 after a 503): the subscription may or may
 * not exist. Creating again with `recreateIfExists: true` leaves exactly one subscription and returns its id. `cause` is
 * the error that the call got instead of the answer.
 */
export class OutcomeUnknownError extends NotificationError<Fields<OutcomeUnknownError, 'request'>> {
  /** @internal */ protected static override readonly nsErrorName = 'OutcomeUnknownError'
  override readonly code = 'OUTCOME_UNKNOWN'
  /** What was asked for, without parameters and headers: add those to create it again. */
  declare readonly request: SubscriptionRequestSummary
}

/** A server reported success with a body that cannot be used (docs/service.md, Resources). */
export class ResponseValidationError extends NotificationError<
  Fields<ResponseValidationError, 'status' | 'body' | 'issues', 'url' | 'requestId'>
> {
  /** @internal */ protected static override readonly nsErrorName = 'ResponseValidationError'
  override readonly code = 'RESPONSE_VALIDATION'
  declare readonly status: number
  /** The address that answered, without its query. */
  declare readonly url: string | undefined
  /**
   * The answer's body as text, at most 64 KiB; replaced if credentials or parameter values are in it. After a 201, the
   * new id may be in it.
   */
  declare readonly body: string
  declare readonly issues: readonly Issue[]
  /** The server's id of this request, such as `x-request-id` (docs/errors.md, Request ids). */
  declare readonly requestId: string | undefined
}

/** A callback body is not a notification delivery (docs/service.md, Resources). `issues` says why. */
export class InvalidDeliveryError extends NotificationError {
  /** @internal */ protected static override readonly nsErrorName = 'InvalidDeliveryError'
  override readonly code = 'INVALID_DELIVERY'
  /** Why the body is no delivery; paths start at the body. */
  declare readonly issues: readonly Issue[]
  /** What was received, unchanged: text, bytes or a parsed value. Not enumerable, so that logs do not show it. */
  declare readonly body: unknown

  constructor(
    message: string,
    details: Fields<InvalidDeliveryError, 'issues' | 'body'>,
    options?: { cause?: unknown },
  ) {
    super(message, { issues: details.issues }, options)
    Object.defineProperty(this, 'body', { value: details.body })
  }

  /**
   * The received body as text: bytes are read as UTF-8, with replacement characters for invalid ones; a parsed value is
   * written as JSON. Empty if the body cannot be written as text.
   */
  get bodyText(): string {
    const { body } = this
    if (typeof body === 'string') return body
    try {
      // Accepts every kind of bytes, also of another realm, and throws for anything else.
      return new TextDecoder().decode(body as ArrayBuffer)
    } catch {}
    try {
      return JSON.stringify(body) ?? ''
    } catch {
      return ''
    }
  }
}

/**
 * A spool could not keep a delivery or a body: it is lost when this process ends (docs/spool.md, What is promised).
 * `cause` is the error of the disk.
 */
export class SpoolError extends NotificationError<Fields<SpoolError, 'reason'>> {
  /** @internal */ protected static override readonly nsErrorName = 'SpoolError'
  override readonly code = 'SPOOL'
  /**
   * Why the spool could not keep it.
   *
   * - `full`: the waiting deliveries have reached `maxBytes`, or a single body is larger than 16 MiB.
   * - `disk`: the disk is full, fails, or is too slow.
   * - `lock`: the spool has stopped, because its lock is gone from the folder and another process may use it.
   */
  declare readonly reason: 'full' | 'disk' | 'lock'
}
