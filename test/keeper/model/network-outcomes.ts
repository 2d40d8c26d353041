/** What the network and the service can make of one request. */

/** Times count from the sending of the request. An effect may come long after the client has given up. */
export type NetworkOutcome =
  | { readonly kind: 'answered' }
  /** The service answers with an error status; 500, 502, 504 and 520 leave open whether the request took effect. */
  | {
      readonly kind: 'status'
      readonly status: number
      readonly effectAfterMs?: number | undefined
      readonly retryAfterMs?: number | undefined
    }
  /** The connection breaks before the answer. */
  | { readonly kind: 'reset'; readonly effectAfterMs?: number | undefined }
  /** No connection is made. */
  | { readonly kind: 'unreachable' }
  /** The answer comes late, often after the time limit. */
  | { readonly kind: 'slow'; readonly effectAfterMs: number; readonly answerAfterMs: number }
  /** No answer comes. */
  | { readonly kind: 'silent'; readonly effectAfterMs?: number | undefined }
  /** The request takes effect, and the answer is not one of the service. */
  | { readonly kind: 'garbled' }
  /** The authorization server refuses the credentials. */
  | { readonly kind: 'no-token' }

export const answered: NetworkOutcome = { kind: 'answered' }

/** A request takes effect within this time, or never: less than the two minutes after which a claim is taken over. */
export const latestEffectMs = 105_000

export const unknownStatuses: readonly number[] = [500, 502, 504, 520]

/** Whether the sender knows from the answer if the request took effect. */
export function isDefinite(outcome: NetworkOutcome, effect: number): boolean {
  switch (outcome.kind) {
    case 'status':
      return !unknownStatuses.includes(outcome.status)
    case 'reset':
    case 'silent':
      return false
    // Only the answer to a create has a body.
    case 'garbled':
      return effect !== 201
    default:
      return true
  }
}
