/** The option `secrets` as a function: from a vault, or for the tenant that a header names. */
import type { Log } from '../logger.js'
import { configurationError } from '../shared/validation.js'
import { withTimeLimit } from '../shared/waits.js'
import type { RequestHeaders } from './headers.js'
import { type Authenticator, authenticator, logShortSecrets, type Secrets, secretsIssues } from './verify.js'

/** Gives the secrets of a callback by its headers. Called for each callback: it keeps what it reads from a vault. */
export type SecretsSource = (request: {
  /** The value of a header of the callback, by its name in any case, if it was sent once. */
  readonly header: (name: string) => string | undefined
}) => Secrets | undefined | Promise<Secrets | undefined>

const answerMs = 5_000

/** Its result is a promise only for a function. @param sparseLog - for failures of the function, which any sender may cause */
export function authenticatorOf(
  secrets: Secrets | SecretsSource | undefined,
  log: Log,
  sparseLog: Log,
): (headers: RequestHeaders) => ReturnType<Authenticator> | Promise<ReturnType<Authenticator>> {
  if (secrets === undefined) return () => undefined
  if (typeof secrets !== 'function') {
    logShortSecrets(secrets, log)
    return authenticator(secrets)
  }
  return async (headers) => {
    try {
      const found = await withTimeLimit(answerMs, () => secrets({ header: (name) => headers.get(name) }))
      if (found === undefined) return { status: 401, reason: 'there are no secrets for this request' }
      const issues = secretsIssues(found)
      if (issues.length > 0) throw configurationError('The result of `secrets` is no secrets')(issues)
      return authenticator(found)(headers)
    } catch (err) {
      const message = 'The function `secrets` failed: the callback is refused'
      sparseLog('error', { event: 'secrets.failed', err }, message)
      return { status: 401, reason: 'the function `secrets` failed' }
    }
  }
}
