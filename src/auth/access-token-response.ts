/** What the token endpoint answers (docs/service.md, Resources; RFC 6749 sections 5.1 and 5.2). */
import * as z from 'zod'
import { type Issue, ResponseValidationError, TokenRequestError } from '../errors.js'
import { redactTokens } from '../http/redact.js'
import type { Answer } from '../http/send.js'
import { formatIssues, validate } from '../shared/issues.js'
import { parseJson } from '../shared/parse-json.js'

/** A token goes into a header, where only visible ASCII can stand. */
export const accessTokenPattern = /^[\x21-\x7e]+$/

/**
 * A successful answer of the token endpoint (docs/service.md, Resources). Fields beyond these are dropped.
 *
 * `expires_in` is the lifetime in seconds; `token_type` is Bearer in any case.
 */
export const accessTokenResponseSchema = z.object({
  /** The token, in JWT format; opaque to the client. */
  access_token: z
    .string()
    .regex(accessTokenPattern, 'must be visible ASCII characters: nothing else can be sent in a header'),
  /** Bearer, in any case: letter by letter, because a pattern in JSON Schema has no flags. */
  token_type: z
    .string()
    .regex(/^[Bb][Ee][Aa][Rr][Ee][Rr]$/, 'must be Bearer, the only type this service uses'),
  /** Lifetime in seconds, counted from when the answer was generated. */
  expires_in: z.int().nonnegative(),
})

/** The fields of a successful token answer. */
export type AccessTokenResponse = z.output<typeof accessTokenResponseSchema>

const oauthErrorSchema = z.lazy(() => {
  const text = z.string().optional().catch(undefined)
  return z.object({ error: text, error_description: text })
})

/**
 * The access token in an answer of the token endpoint.
 *
 * @throws `TokenRequestError` for any status but 200; `ResponseValidationError` for a 200 whose body is no access token
 */
export function readAccessTokenResponse(answer: Answer): AccessTokenResponse {
  if (answer.status !== 200) throw tokenRequestError(answer)
  const json = parseJson(answer.body)
  if (json === undefined) throw unusableToken(answer, [{ path: [], message: 'is not JSON' }])
  return validate(accessTokenResponseSchema, json, (issues) => unusableToken(answer, issues))
}

function unusableToken(answer: Answer, issues: readonly Issue[]): ResponseValidationError {
  const { status, url } = answer
  return new ResponseValidationError(
    `The token endpoint ${url} answered 200 with a body that is no access token (${formatIssues(issues)}). ` +
      'Check that `authUrl` and `domain` name the authorization server.',
    { status, url, body: redactTokens(answer.redact(answer.body)), issues },
  )
}

/** What an error status of the token endpoint means (RFC 6749 section 5.2). */
export function tokenRequestError(answer: Answer): TokenRequestError {
  const { status, url, retryAfterMs } = answer
  const sent = oauthErrorSchema.safeParse(parseJson(answer.body)).data
  // Redacted after parsing, because a secret may stand escaped in the JSON text.
  const shown = (text: string | undefined) => text && redactTokens(answer.redact(text))
  const error = shown(sent?.error)
  const errorDescription = shown(sent?.error_description)
  const words = [error, errorDescription].filter(Boolean).join(': ')
  return new TokenRequestError(
    `The authorization server answered ${status} to the token request${words && ` (${words})`}. ${advice(status, error)}`,
    { status, url, error, errorDescription, retryAfterMs },
  )
}

function advice(status: number, error: string | undefined): string {
  if (error === 'invalid_scope') return 'Check `scope`: it is unknown there, or not granted to this client.'
  if (status === 400 || status === 401 || status === 403) {
    return (
      'Check `clientId`, `clientSecret` and `domain`; if the secret contains characters such as : / + or %, ' +
      "also try `credentialsEncoding: 'form-urlencoded'`."
    )
  }
  if (status === 404) return 'Check `authUrl` and `domain`: there is no token endpoint at that address.'
  if (status === 429 || status >= 500) return 'The server is busy or out of order: try again later.'
  return 'Check `authUrl`: a token endpoint answers 200, and redirects are not followed.'
}
