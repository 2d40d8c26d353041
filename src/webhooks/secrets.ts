/** The option `secrets` as a function: from a vault, or for the tenant that a header names. */
import type { Log } from '../logger.js'
import { configurationError } from '../shared/validation.js'
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

/** Further tenants push out the oldest. */
const maxTenants = 10_000

/** Anyone may send any value of a header: what has no secrets pushes out no tenant, and cannot flood a vault. */
const maxStrangers = 1_000
const strangersPerSecond = 100

interface Entry {
  readonly authenticate: Authenticator | undefined
  readonly freshUntil: number
  /** When a callback that it refuses may ask again: its secrets may be new. */
  readonly refusesUntil: number
}

/** Its result is a promise only for a function. @param sparseLog - for failures of the function, which any sender may cause */
export function authenticatorOf(
  secrets: Secrets | SecretsSource | undefined,
  log: Log,
  sparseLog: Log,
): (headers: RequestHeaders) => ReturnType<Authenticator> | Promise<ReturnType<Authenticator>> {
  if (secrets === undefined) return () => undefined
  if (typeof secrets === 'function') return cachedAuthenticator(secrets, sparseLog)
  logShortSecrets(secrets, log)
  return authenticator(secrets)
}

/**
 * Asks the function once a minute for each combination of the headers that it reads, and for a refused callback once in five
 * seconds. If it fails, the last secrets count, and it is asked again after five seconds, or at once if there are none.
 */
function cachedAuthenticator(source: SecretsSource, log: Log) {
  const namesRead = new Set<string>()
  const tenants = new Map<string, Entry>()
  const strangers = new Map<string, Entry>()
  const asking = new Map<string, Promise<Authenticator | undefined>>()
  let second = Number.NEGATIVE_INFINITY
  let askedInSecond = 0

  const keyOf = (headers: RequestHeaders) =>
    JSON.stringify([...namesRead].map((name) => headers.get(name) ?? null))

  function keep(key: string, authenticate: Authenticator | undefined, ms: number): Authenticator | undefined {
    tenants.delete(key)
    strangers.delete(key)
    const entries = authenticate ? tenants : strangers
    const now = performance.now()
    entries.set(key, { authenticate, freshUntil: now + ms, refusesUntil: now + retryMs })
    const [oldest = key] = entries.keys()
    if (entries.size > (authenticate ? maxTenants : maxStrangers)) entries.delete(oldest)
    return authenticate
  }

  function isOneTooMany(): boolean {
    const now = performance.now()
    if (now >= second + 1_000) [second, askedInSecond] = [now, 0]
    askedInSecond += 1
    return askedInSecond > strangersPerSecond
  }

  async function find(headers: RequestHeaders): Promise<Authenticator | undefined> {
    const asked = ask(source, headers, namesRead)
    // Only now it is known which headers it reads.
    const key = keyOf(headers)
    const found = asked.then(
      (authenticate) => keep(key, authenticate, freshMs),
      (err) => {
        const message = 'The function `secrets` failed: its last secrets count'
        log('error', { event: 'secrets.failed', err }, message)
        const authenticate = tenants.get(key)?.authenticate
        return authenticate && keep(key, authenticate, retryMs)
      },
    )
    asking.set(key, found)
    return found.finally(() => asking.delete(key))
  }

  return async (headers: RequestHeaders) => {
    const presented = keyOf(headers)
    const kept = tenants.get(presented) ?? strangers.get(presented)
    const refused = resultOf(kept?.authenticate, headers)
    const now = performance.now()
    const isFresh = kept !== undefined && now < kept.freshUntil
    if (isFresh && (refused === undefined || now < kept.refusesUntil)) return refused
    const running = asking.get(presented)
    const isTrusted = kept?.authenticate !== undefined && !isFresh
    if (!running && !isTrusted && isOneTooMany()) return refused
    return resultOf(await (running ?? find(headers)), headers)
  }
}

function resultOf(authenticate: Authenticator | undefined, headers: RequestHeaders) {
  if (authenticate) return authenticate(headers)
  return { status: 401, reason: 'there are no secrets for this request' } as const
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
  const late = () => new Error(`no result within ${answerMs} ms`)
  const result = withTimeLimit(answerMs, () => source({ header }), late)
  isReadable = false
  const secrets = await result
  if (secrets === undefined) return undefined
  const issues = secretsIssues(secrets)
  if (issues.length > 0) throw configurationError('The result of `secrets` is no secrets')(issues)
  return authenticator(secrets)
}
