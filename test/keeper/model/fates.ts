/** What can become of a request, and of the service as a whole. */

/** What becomes of one request. Times count from its sending. */
export type Fate =
  | { readonly kind: 'answered' }
  /** The service answers with an error status; 500, 502 and 504 leave open whether the request took effect. */
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
  /** The answer comes late, often too late. */
  | { readonly kind: 'slow'; readonly effectAfterMs: number; readonly answerAfterMs: number }
  /** No answer comes. */
  | { readonly kind: 'silent'; readonly effectAfterMs?: number | undefined }
  /** The request takes effect, and the answer is no answer of the service. */
  | { readonly kind: 'garbled' }
  /** The authorization server refuses the credentials. */
  | { readonly kind: 'no-token' }

export const answered: Fate = { kind: 'answered' }
