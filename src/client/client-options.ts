/** How a client is configured: the options, their validation, and the environment variables. */
import type * as z from 'zod'
import type { Auth } from '../auth/auth.js'
import { ConfigurationError, type Issue } from '../errors.js'
import type { FetchLike } from '../http/fetch-transport.js'
import type { RetryOptions } from '../http/retry.js'
import type { DispatcherLike } from '../http/undici-transport.js'
import type { Logger } from '../logger.js'
import { formatIssues, issuesOf } from '../shared/issues.js'
import { urlProblem } from '../shared/url-problem.js'
import type { Routes } from '../subscriptions/requests.js'
import {
  basicSchema,
  clientCredentialsSchema,
  optionsSchema,
  providedTokenSchema,
} from './client-option-schemas.js'

/**
 * What a `NotificationClient` needs: `baseUrl` and `auth`; the rest has defaults. `dispatcher` and `fetch` exclude
 * each other.
 */
export interface NotificationClientOptions {
  /** Base address of the notification service, `https:`. */
  readonly baseUrl: string | URL
  /**
   * Client credentials (interface.md section 4.1), `{ username, password }` or `{ getAccessToken }` (section 5,
   * rules 3 and 4).
   */
  readonly auth: Auth
  /**
   * An undici `Dispatcher` (6, 7 or 8) for all requests: a proxy, a private CA, a mock. It is never closed.
   * Default: one of the client's own, which follows `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
   */
  readonly dispatcher?: DispatcherLike | undefined
  /** A `fetch` for all requests, in place of undici, which is then never loaded. */
  readonly fetch?: FetchLike | undefined
  /** Limit for each whole call, token and retries included, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number | undefined
  /** How failed attempts are repeated; `false` for not at all. */
  readonly retry?: RetryOptions | false | undefined
  /** Gets one structured line per request, retry, refresh and failure; never a secret. Default: silent. */
  readonly logger?: Logger | undefined
  /** Overrides the method and path of the operations that interface.md leaves open. */
  readonly routes?: Routes | undefined
  /** Allows `http:` addresses on loopback hosts, for tests. Default: `false`. */
  readonly allowInsecureLoopback?: boolean | undefined
}

/** @throws `ConfigurationError` with every problem found. */
export function validateClientOptions(options: NotificationClientOptions): void {
  const issues = [...issuesIn(optionsSchema, options, []), ...authIssues(options), ...addressIssues(options)]
  if (issues.length === 0) return
  throw new ConfigurationError(
    `NotificationClient cannot be made from these options: ${formatIssues(issues)}.`,
    {
      issues,
    },
  )
}

function authIssues(options: NotificationClientOptions): Issue[] {
  const auth: unknown = Object(options).auth
  if (typeof auth !== 'object' || auth === null) {
    return [
      { path: ['auth'], message: 'must be client credentials, { username, password } or { getAccessToken }' },
    ]
  }
  // Chosen by what is there, so that the issues speak of the kind that was meant.
  if ('getAccessToken' in auth && ('clientSecret' in auth || 'password' in auth)) {
    return [{ path: ['auth'], message: 'must be one kind of credentials, not `getAccessToken` and another' }]
  }
  if ('getAccessToken' in auth) return issuesIn(providedTokenSchema, auth, ['auth'])
  if ('username' in auth || 'password' in auth) return issuesIn(basicSchema, auth, ['auth'])
  return issuesIn(clientCredentialsSchema, auth, ['auth'])
}

function addressIssues(options: NotificationClientOptions): Issue[] {
  const { baseUrl, auth, allowInsecureLoopback }: Record<string, unknown> = Object(options)
  const addresses: [PropertyKey[], unknown][] = [
    [['baseUrl'], baseUrl],
    [['auth', 'authUrl'], Object(auth).authUrl],
  ]
  return addresses.flatMap(([path, address]) => {
    if (typeof address !== 'string' && !(address instanceof URL)) return []
    const message = urlProblem(address, allowInsecureLoopback === true) ?? basePathProblem(address)
    return message === undefined ? [] : [{ path, message }]
  })
}

function basePathProblem(address: string | URL): string | undefined {
  return /[?#]/.test(String(address))
    ? 'must not contain a query or a fragment: paths are added to it'
    : undefined
}

function issuesIn(schema: z.ZodType, value: unknown, at: readonly PropertyKey[]): Issue[] {
  const parsed = schema.safeParse(value)
  if (parsed.success) return []
  return issuesOf(parsed.error).map(({ path, message }) => ({ path: [...at, ...path], message }))
}

const variables = {
  NOTIFICATION_BASE_URL: 'base address of the notification service',
  NOTIFICATION_AUTH_URL: 'base address of the authorization server',
  NOTIFICATION_DOMAIN: "the tenant's name",
  NOTIFICATION_CLIENT_ID: 'client ID',
  NOTIFICATION_CLIENT_SECRET: 'client secret',
} as const

/** @throws `ConfigurationError` naming every variable that is missing or empty. */
export function optionsFromEnv(
  env: Readonly<Record<string, string | undefined>>,
): Pick<NotificationClientOptions, 'baseUrl' | 'auth'> {
  // JavaScript callers may pass what is no environment: then everything is missing from it.
  const given: typeof env = Object(env)
  const issues = Object.entries(variables)
    .filter(([name]) => !given[name])
    .map(([name, meaning]) => ({ path: [name], message: `is not set (${meaning})` }))
  if (issues.length > 0) {
    throw new ConfigurationError(`The environment lacks what a client needs: ${formatIssues(issues)}.`, {
      issues,
    })
  }
  const value = (name: keyof typeof variables) => given[name] ?? ''
  return {
    baseUrl: value('NOTIFICATION_BASE_URL'),
    auth: {
      authUrl: value('NOTIFICATION_AUTH_URL'),
      domain: value('NOTIFICATION_DOMAIN'),
      clientId: value('NOTIFICATION_CLIENT_ID'),
      clientSecret: value('NOTIFICATION_CLIENT_SECRET'),
    },
  }
}
