/** The option `secrets` as a function: from a vault, or for the tenant that a header names. */
import { ConfigurationError } from '../errors.js'
import type { Log } from '../logger.js'
import { formatIssues } from '../shared/validation.js'
import { withTimeLimit } from '../shared/waits.js'
import type { RequestHeaders } from './headers.js'
import { type Authenticator, authenticator, logShortSecrets, type Secrets, secretsIssues } from './verify.js'

/** Gives the secrets of a callback by its headers, which it must read before its first `await`. */
export type SecretsSource = (request: {
  /** The value of a header of the callback, by its name in any case, if it was sent once. */
  readonly header: (name: string) => string | undefined
}) => Secrets | undefined | Promise<Secrets | undefined>

const freshMs = 60_000
const retryMs = 5_000
const answerMs = 5_000

/** Anyone may send any value of a header. */
const maxEntries = 1_000

interface Entry {
  readonly authenticate: Promise<Authenticator | undefined>
  readonly freshUntil: number
}

/** The check of the option `secrets`. Its result is a promise only for a function. */
export function authenticatorOf(
  secrets: Secrets | SecretsSource | undefined,
  log: Log,
): (headers: RequestHeaders) => ReturnType<Authenticator> | Promise<ReturnType<Authenticator>> {
  if (secrets === undefined) return () => undefined
  if (typeof secrets === 'function') return cachedAuthenticator(secrets, log)
  logShortSecrets(secrets, log)
  return authenticator(secrets)
}

/**
 * Asks the function once a minute for each combination of the headers that it reads. If it fails, its last result counts until
 * it works again.
 */
function cachedAuthenticator(source: SecretsSource, log: Log) {
  const namesRead = new Set<string>()
  const entries = new Map<string, Entry>()
  const keyOf = (headers: RequestHeaders) =>
    JSON.stringify([...namesRead].map((name) => headers.get(name) ?? null))

  function find(headers: RequestHeaders): Entry['authenticate'] {
    const known = entries.get(keyOf(headers))
    if (known && performance.now() < known.freshUntil) return known.authenticate
    const asked = ask(source, headers, namesRead)
    // Only now it is known which headers it reads.
    const key = keyOf(headers)
    const last = entries.get(key)?.authenticate
    const keep = (authenticate: Entry['authenticate'], ms: number) => {
      if (entries.size >= maxEntries) entries.clear()
      entries.set(key, { authenticate, freshUntil: performance.now() + ms })
      return authenticate
    }
    const authenticate = asked.catch((err) => {
      log('error', { event: 'secrets.failed', err }, 'The function `secrets` failed: its last result counts')
      return keep(last ?? Promise.resolve(undefined), retryMs)
    })
    return keep(authenticate, freshMs)
  }

  return async (headers: RequestHeaders) => {
    const authenticate = await find(headers)
    return authenticate ? authenticate(headers) : { reason: 'there are no secrets for this request' }
  }
}

async function ask(
  source: SecretsSource,
  headers: RequestHeaders,
  namesRead: Set<string>,
): Promise<Authenticator | undefined> {
  let isReadable = true
  const header = (name: string) => {
    if (!isReadable) throw new TypeError('`secrets` must read headers before its first await')
    namesRead.add(name.toLowerCase())
    return headers.get(name)
  }
  const result = (async () => source({ header }))()
  isReadable = false
  const secrets = await withTimeLimit(answerMs, result, () => new Error(`no result within ${answerMs} ms`))
  if (secrets === undefined) return undefined
  const issues = secretsIssues(secrets)
  if (issues.length === 0) return authenticator(secrets)
  throw new ConfigurationError(`The result of \`secrets\` is no secrets: ${formatIssues(issues)}.`, {
    issues,
  })
}
