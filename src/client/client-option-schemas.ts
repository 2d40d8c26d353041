/** The shapes of a client's options and of a call's, each made when it is first needed. */
import * as z from 'zod'
import type { CredentialsEncoding } from '../auth/basic-credentials.js'
import type { CallOptions } from '../http/deadline.js'
import { maxDelayMs } from '../shared/max-delay.js'

const timeout = () => z.number().positive().max(maxDelayMs)
const url = () => z.union([z.string(), z.instanceof(URL)], 'must be a URL')
const nonEmpty = () => z.string().min(1, 'must not be empty')
const httpText = () => nonEmpty().regex(/^\P{Cc}*$/u, 'must not contain control characters')
const functionFor = (what: string) => z.custom((value) => typeof value === 'function', `must be ${what}`)
// The webhooks door has one with a sentence of its own: what that could share would make it larger.
const objectWith = (methods: readonly string[], what: string) =>
  z.custom(
    (value) => methods.every((method) => typeof Object(value)[method] === 'function'),
    `must be ${what}`,
  )

export const clientCredentialsSchema = z.lazy(() =>
  z
    .strictObject({
      authUrl: url(),
      domain: nonEmpty().refine(isPathSegment, 'must be a realm name'),
      clientId: httpText(),
      clientSecret: httpText(),
      scope: nonEmpty().optional(),
      credentialsEncoding: z.enum(['raw', 'form-urlencoded'] satisfies CredentialsEncoding[]).optional(),
      tokenCache: objectWith(['get', 'set', 'delete'], 'an object with get, set and delete').optional(),
    })
    .refine((auth) => auth.credentialsEncoding === 'form-urlencoded' || !auth.clientId.includes(':'), {
      path: ['clientId'],
      error:
        'must not contain a colon, which ends the ID in raw credentials; ' +
        "use `credentialsEncoding: 'form-urlencoded'`",
    }),
)

export const basicSchema = z.lazy(() =>
  z.strictObject({
    username: httpText().refine(
      (name) => !name.includes(':'),
      'must not contain a colon: it would end there',
    ),
    password: httpText(),
  }),
)

export const providedTokenSchema = z.lazy(() =>
  // Loose: an object of a class has fields of its own.
  z.looseObject({ getAccessToken: functionFor('a function that returns an access token') }),
)

const routeSchema = () =>
  z.strictObject({
    method: z.enum(['POST', 'PUT', 'DELETE']).optional(),
    path: z
      .string()
      .regex(/^\/[\x21-\x7e]*$/, 'must begin with / and hold visible ASCII characters only')
      .includes('{subscriptionId}', 'must contain {subscriptionId}, the place of the id')
      .optional(),
  })

const retrySchema = () =>
  z.preprocess(
    // `false` is checked as a policy without fields, because a union would tell none of a policy's problems.
    (retry) => (retry === false ? {} : retry),
    z.strictObject(
      {
        maxAttempts: z.int().positive().optional(),
        baseDelayMs: z.number().nonnegative().max(maxDelayMs).optional(),
        maxDelayMs: z.number().nonnegative().max(maxDelayMs).optional(),
      },
      { error: ({ code }) => (code === 'invalid_type' ? 'must be an object or false' : undefined) },
    ),
  )

export const optionsSchema = z.lazy(() =>
  z
    .strictObject({
      baseUrl: url(),
      // Checked by its kind: see `authIssues`.
      auth: z.unknown().optional(),
      dispatcher: objectWith(['request'], 'an undici Dispatcher').optional(),
      fetch: functionFor('a fetch function').optional(),
      timeoutMs: timeout().optional(),
      retry: retrySchema().optional(),
      logger: objectWith(
        ['debug', 'info', 'warn', 'error'],
        'a logger with debug, info, warn and error',
      ).optional(),
      routes: z
        .strictObject({ unsubscribe: routeSchema().optional(), update: routeSchema().optional() })
        .optional(),
      allowInsecureLoopback: z.boolean().optional(),
    })
    .refine(({ dispatcher, fetch }) => dispatcher === undefined || fetch === undefined, {
      path: ['fetch'],
      error: 'cannot be used together with `dispatcher`: requests go through one of them',
    }),
)

/** What a caller sets on a single call. */
export const callOptionsSchema: z.ZodType<CallOptions, CallOptions> = z.lazy(() =>
  z.strictObject({
    signal: z.custom<AbortSignal>(isAbortSignal, 'must be an AbortSignal').optional(),
    timeoutMs: timeout().optional(),
  }),
)

function isPathSegment(domain: string): boolean {
  return domain !== '.' && domain !== '..' && domain.isWellFormed()
}

/** By shape: a signal may come from another realm, or from a polyfill. */
function isAbortSignal(value: unknown): boolean {
  return typeof Object(value).aborted === 'boolean' && typeof Object(value).addEventListener === 'function'
}
