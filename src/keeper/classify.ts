/** What the client's answers and errors mean to the keeper. */
import {
  ApiError,
  ConfigurationError,
  ConnectionError,
  InvalidRequestError,
  NotificationError,
  OutcomeUnknownError,
  ResponseValidationError,
  SubscriptionConflictError,
  SubscriptionNotFoundError,
  TimeoutError,
  TokenRequestError,
} from '../errors.js'
import type { Answer } from './apply.js'
import type { Call } from './decide.js'

/** `INVALID`: the client refuses the request and sent nothing. `REFUSED`: the service refused just this request. */
export type TroubleKind = 'CREDENTIALS' | 'SERVICE' | 'REFUSED' | 'INVALID'

/** Why a call failed. */
export interface Trouble {
  readonly kind: TroubleKind
  readonly error: unknown
  readonly retryAfterMs: number | undefined
}

export interface Classified {
  readonly answer: Answer
  readonly trouble?: Trouble
}

export function classify(call: Call, error: unknown): Classified {
  if (call.kind === 'create' && error instanceof SubscriptionConflictError) {
    return { answer: { kind: 'conflict' } }
  }
  if (call.kind !== 'create' && error instanceof SubscriptionNotFoundError) {
    return { answer: { kind: 'not-found' } }
  }
  const isLost = mayHaveTakenEffect(call, error)
  return { answer: { kind: isLost ? 'lost' : 'refused' }, trouble: troubleOf(error) }
}

function mayHaveTakenEffect(call: Call, error: unknown): boolean {
  // What is no error of this package was thrown by somebody's own client, and says nothing about the request.
  if (!(error instanceof NotificationError)) return true
  if (error instanceof OutcomeUnknownError || error instanceof ResponseValidationError) return true
  if (error instanceof ConnectionError) return error.requestSent
  // Of a create that was sent the client says OutcomeUnknownError.
  if (error instanceof TimeoutError) return call.kind !== 'create' && error.phase === 'answer'
  return error instanceof ApiError && [500, 502, 504].includes(error.status)
}

function troubleOf(error: unknown): Trouble {
  return { kind: troubleKindOf(error), error, retryAfterMs: retryAfterOf(error) }
}

function troubleKindOf(error: unknown): TroubleKind {
  if (error instanceof InvalidRequestError || error instanceof ConfigurationError) return 'INVALID'
  if (error instanceof TokenRequestError) {
    return [400, 401, 403].includes(error.status) ? 'CREDENTIALS' : 'SERVICE'
  }
  if (!(error instanceof ApiError)) return 'SERVICE'
  if (error.status === 401 || error.status === 403) return 'CREDENTIALS'
  return error.status === 429 || error.status >= 500 ? 'SERVICE' : 'REFUSED'
}

function retryAfterOf(error: unknown): number | undefined {
  return error instanceof ApiError || error instanceof TokenRequestError ? error.retryAfterMs : undefined
}

/** Whether waiting a second or two may be all it takes. */
export function isPassing({ kind, error }: Trouble): boolean {
  return kind === 'SERVICE' && error instanceof NotificationError
}
