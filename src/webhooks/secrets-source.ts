/** The option `secrets` as a function: secrets that change, or that depend on the tenant that a header names. */
import type { Issue } from '../errors.js'
import type { Log } from '../logger.js'
import { configurationError } from '../shared/validation.js'
import { headerOf } from './headers.js'
import { type Authenticator, authenticator, logShortSecrets, type Secrets, secretsIssues } from './secrets.js'

/** Gives the secrets of a callback by its headers; `undefined` refuses the callback. Synchronous, and called for each callback. */
export type SecretsSource = (request: {
  /** The value of a header of the callback, by its name in any case, if it was sent once. */
  readonly header: (name: string) => string | undefined
}) => Secrets | undefined

/** @param sparseLog - for failures of the function, which any sender may cause */
export function authenticatorOf(
  secrets: Secrets | SecretsSource | undefined,
  log: Log,
  sparseLog: Log,
): Authenticator {
  if (secrets === undefined) return () => undefined
  if (typeof secrets !== 'function') {
    logShortSecrets(secrets, log)
    return authenticator(secrets)
  }
  let isFirst = true
  return (headers) => {
    try {
      const found = secrets({ header: (name) => headerOf(headers, name) })
      if (found === undefined) return { status: 401, reason: 'there are no secrets for this request' }
      const [issue] = [...promiseIssues(found), ...secretsIssues(found)]
      if (issue) throw noSecrets([{ ...issue, path: ['secrets', ...issue.path] }])
      if (isFirst) logShortSecrets(found, log)
      isFirst = false
      return authenticator(found)(headers)
    } catch (err) {
      const message = 'The function `secrets` failed: the callback is refused'
      sparseLog('error', { event: 'secrets.failed', err }, message)
      return { status: 401, reason: 'the function `secrets` failed' }
    }
  }
}

const noSecrets = configurationError('The function `secrets` returned no secrets')

/** Why a function cannot be the option: it returns a promise. Here a throw or a missing value does not count. */
export function sourceIssues(source: SecretsSource): readonly Issue[] {
  try {
    return promiseIssues(source({ header: () => undefined }))
  } catch {
    return []
  }
}

/** Whether a result, or a value in it, is a promise, whose rejection would otherwise end the process. */
function promiseIssues(found: unknown): readonly Issue[] {
  const values = [found, ...Object.values(Object(found)).flat()]
  const promises = values.filter((value) => typeof Object(value).then === 'function')
  for (const promise of promises) Promise.resolve(promise).catch(() => {})
  const message =
    'must be synchronous: return what a variable holds, and refresh that variable beside the function (docs/receiver.md, Secrets that change)'
  return promises.slice(0, 1).map(() => ({ path: [], message }))
}
