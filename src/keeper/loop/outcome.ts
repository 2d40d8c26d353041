/** The outcome of a reconciliation. */

/**
 * How a reconciliation ended, and when the user is due again.
 *
 * - `done`: the user is in the wanted state. `removed`: nothing of an unwanted user is left.
 * - `conflict`: another subscription is in the way. `waiting`: the next restore must wait.
 * - `claimed`: another process is working on the user, or a call was not answered.
 * - `held`: an outage, the store or a newer configuration prevents all calls.
 * - `failed`: a call, the user's key in the store, or the keeper itself failed. Without `againMs` a backoff decides.
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

/** The results of the calls of one reconciliation. */
export interface Achieved {
  readonly isCreated: boolean
  readonly isRestored: boolean
}

export interface Reconciled extends Achieved {
  readonly outcome: Outcome
}

/**
 * Why a user could not be reconciled. `INVALID`: the client refuses the request and sent nothing. `REFUSED`: the service
 * refused this request. `STORE`: the user's record cannot be read or written. `BUG`: the keeper has thrown.
 */
export interface Failure {
  readonly kind: 'CREDENTIALS' | 'SERVICE' | 'REFUSED' | 'INVALID' | 'STORE' | 'BUG'
  readonly error: unknown
  readonly retryAfterMs?: number | undefined
}
