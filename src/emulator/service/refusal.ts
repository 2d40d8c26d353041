/** An error answer, thrown where the reason for it is found and turned into a response in one place. */

/**
 * Carries an HTTP status, a short code and a sentence. The form of the service's error bodies is not documented
 * (docs/service.md, Errors), so the emulator has its own: `{ error, message }` from the subscription calls, and
 * `{ error, error_description }` from the token endpoint, as RFC 6749 section 5.2 has it.
 */
export class Refusal extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.code = code
    this.headers = headers
  }
}
