/** The options of a client and of a call: their types, and the schemas that validate them. */
import * as z from 'zod'
import { type Auth, authSchema } from '../auth/credentials.js'
import type { DispatcherLike, FetchLike } from '../http/fetch.js'
import type { RetryOptions } from '../http/retry.js'
import type { ResponseSummary } from '../http/send.js'
import type { Logger } from '../logger.js'
import { addressSchema } from '../shared/addresses.js'
import { certificatesIn } from '../shared/certificates.js'
import { type Routes, routesSchema } from '../shared/routes.js'
import { thrownBy } from '../shared/text.js'
import {
  abortSignalSchema,
  configurationError,
  functionFor,
  issueFrom,
  loggerSchema,
  objectWith,
  validate,
} from '../shared/validation.js'
import { maxDelayMs } from '../shared/waits.js'
import { headersSchema } from '../subscriptions/schemas.js'

/** What a client needs: `baseUrl` and `auth`; the rest has defaults. `dispatcher`, `fetch` and `ca` exclude each other. */
export interface NotificationClientOptions {
  /** Base address of the notification service: `https:`, or `http:` on loopback. */
  readonly baseUrl: string | URL
  /** Client credentials, `{ username, password }` or `{ getAccessToken }` (docs/service.md, Authentication). */
  readonly auth: Auth
  /**
   * Certificates of a private authority, as text in PEM, to trust in addition to the public ones. Only for connections
   * that the client opens itself: a `dispatcher` or `fetch` has its own authorities. Default: none.
   */
  readonly ca?: string | undefined
  /**
   * An undici `Dispatcher` (6, 7 or 8) for all requests, e.g. a mock, or a proxy with special rules. The client never
   * closes it. Default: a dispatcher that the client makes, which follows `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
   */
  readonly dispatcher?: DispatcherLike | undefined
  /** A `fetch` for all requests instead of undici, which is then never loaded. Default: undici. */
  readonly fetch?: FetchLike | undefined
  /** Limit for each whole call, token and retries included, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number | undefined
  /** How failed attempts are repeated; `false`: never. Default: see {@link RetryOptions}. */
  readonly retry?: RetryOptions | false | undefined
  /** Gets an event for each request, retry, refresh and failure, never a secret. Default: `false`, none. */
  readonly logger?: Logger | false | undefined
  /**
   * Headers for a gateway in front of the service, such as its API key: sent with every request to the origin of
   * `baseUrl`. Token requests carry them only if `authUrl` has the same origin. Default: none.
   */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** How unsubscribe and update are called (docs/service.md, Endpoints). Default: see {@link Routes}. */
  readonly routes?: Routes | undefined
}

/** What a caller may set on each call. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's own reason. Default: none. */
  readonly signal?: AbortSignal | undefined
  /** Limit for the whole call, token and retries included, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined
  /**
   * How failed attempts of this call are repeated; `false`: never. A field that is left out has the value of the client's
   * option. Token requests serve many calls, so they follow only the client's option.
   */
  readonly retry?: RetryOptions | false | undefined
  /**
   * Called once, before the call settles, with the service's last answer, whether the call succeeds or fails. Not called
   * without an answer, or for token requests, which serve many calls. Default: none.
   */
  readonly onResponse?: ((response: ResponseSummary) => void) | undefined
}

/** Parses addresses, makes `retry: false` one attempt, and does not copy a logger. @throws `ConfigurationError` */
export function validOptions(options: NotificationClientOptions) {
  const { auth }: Record<string, unknown> = Object(options)
  const schema = optionsSchema(auth)
  return validate(schema, options, configurationError('NotificationClient cannot be made from these options'))
}

/** The schema of {@link CallOptions}. Lazy, because most calls have no options. */
export const callOptionsSchema = z.lazy(() =>
  z.strictObject({
    signal: abortSignalSchema().optional(),
    timeoutMs: timeoutSchema().optional(),
    retry: retrySchema().optional(),
    onResponse: functionFor<NonNullable<CallOptions['onResponse']>>('a function').optional(),
  }),
)

function optionsSchema(auth: unknown) {
  return z
    .strictObject({
      baseUrl: addressSchema(/\/api\/subscriptions\/?$/),
      auth: authSchema(auth),
      ca: z
        .string('must be text in PEM')
        .refine(...issueFrom(certificatesProblem))
        .optional(),
      dispatcher: objectWith<DispatcherLike>(['request'], 'an undici Dispatcher').optional(),
      fetch: functionFor<FetchLike>('a fetch function').optional(),
      timeoutMs: timeoutSchema().default(30_000),
      retry: retrySchema().optional(),
      logger: loggerSchema<Logger | false>().optional(),
      headers: headersSchema().optional(),
      routes: routesSchema().optional(),
    })
    .refine(({ dispatcher, fetch }) => dispatcher === undefined || fetch === undefined, {
      path: ['fetch'],
      error: 'cannot be used together with `dispatcher`: requests go through one of them',
    })
    .refine(({ ca, dispatcher, fetch }) => ca === undefined || (dispatcher ?? fetch) === undefined, {
      path: ['ca'],
      error: 'cannot be used together with `dispatcher` or `fetch`: these have authorities of their own',
    })
}

function certificatesProblem(ca: string): string | undefined {
  const certificates = certificatesIn(ca)
  if (certificates.length === 0) {
    return 'must be certificates as text in PEM (-----BEGIN CERTIFICATE-----), not the name of a file: read the file first'
  }
  // Loaded here, so that importing the package does not load `node:crypto`.
  const { X509Certificate } = process.getBuiltinModule('node:crypto')
  const isUnreadable = (each: string) => thrownBy(() => new X509Certificate(each)) !== undefined
  return certificates.some(isUnreadable) ? 'has a certificate that cannot be read' : undefined
}

function timeoutSchema() {
  return z.number().positive().max(maxDelayMs)
}

/** The schema of `retry`. `false` becomes one attempt, because a union would hide problems inside the object. */
function retrySchema() {
  const delay = () => z.number().nonnegative().max(maxDelayMs).optional()
  return z.preprocess(
    (retry) => (retry === false ? { maxAttempts: 1 } : retry),
    z.strictObject(
      { maxAttempts: z.int().positive().optional(), baseDelayMs: delay(), maxDelayMs: delay() },
      { error: ({ code }) => (code === 'invalid_type' ? 'must be an object or false' : undefined) },
    ),
  )
}
