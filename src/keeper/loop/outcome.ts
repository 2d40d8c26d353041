/** What came of a reconciliation. */

/**
 * How a reconciliation ended, and in how long the user is to be reconciled again.
 *
 * - `done`: all is as it should be. `removed`: nothing of the user is left, as it should be.
 * - `conflict`: another subscription is in the way. `waiting`: the next restore has to wait.
 * - `claimed`: another process is working on the user, or a call was not answered.
 * - `held`: an outage, the store or a newer configuration holds all calls back.
 * - `failed`: a call did, or the user's key in the store, or the keeper itself. Without `againMs` a backoff decides.
 */
export type Outcome =
  | { readonly kind: 'done'; readonly againMs: number }
  | { readonly kind: 'removed'; readonly againMs: number }
  | {
      readonly kind: 'conflict' | 'waiting' | 'claimed' | 'held'
      readonly againMs: number
      readonly error: unknown
    }
  | { readonly kind: 'failed'; readonly againMs?: number; readonly failure: Failure }

/** What the calls of one reconciliation have achieved, however it ended. */
export interface Achieved {
  readonly isCreated: boolean
  readonly isRestored: boolean
}

export interface Reconciled extends Achieved {
  readonly outcome: Outcome
}

/**
 * Why a user could not be reconciled. `INVALID`: the client refuses the request and sent nothing. `REFUSED`: the service
 * refused this request. `STORE`: what the store holds of this user cannot be read or written. `BUG`: the keeper has thrown.
 */
export interface Failure {
  readonly kind: 'CREDENTIALS' | 'SERVICE' | 'REFUSED' | 'INVALID' | 'STORE' | 'BUG'
  readonly error: unknown
  readonly retryAfterMs?: number | undefined
}
