/** The shape of a client's options, made when it is first needed. */
import { X509Certificate } from 'node:crypto'
import * as z from 'zod'
import type { FetchLike } from '../http/fetch-transport.js'
import type { DispatcherLike } from '../http/undici-transport.js'
import type { Logger } from '../logger.js'
import { loggerSchema, objectWith } from '../shared/object-schemas.js'
import { type AuthKind, authKind, authSchema } from './auth-schemas.js'
import { addressSchema, functionFor, retrySchema, timeoutSchema } from './common-schemas.js'

/**
 * Options that were checked, with addresses parsed and `retry: false` read as one attempt. Objects of the caller's,
 * such as a logger, are the very ones that were given.
 */
export type ValidClientOptions = z.output<OptionsSchema>

type OptionsSchema = ReturnType<typeof makeSchema>

/** Schemas by the kind of `auth` and by `allowInsecureLoopback`: ten at most, and making one takes a millisecond. */
const schemas = new Map<string, OptionsSchema>()

/** @param options - what the caller gave, which may be anything: the schema depends on what kind of `auth` it has */
export function optionsSchema(options: unknown): OptionsSchema {
  const { auth, allowInsecureLoopback }: Record<string, unknown> = Object(options)
  const kind = authKind(auth)
  const allowsLoopback = allowInsecureLoopback === true
  const key = `${kind} ${allowsLoopback}`
  const schema = schemas.get(key) ?? makeSchema(kind, allowsLoopback)
  schemas.set(key, schema)
  return schema
}

function makeSchema(kind: AuthKind, allowsLoopback: boolean) {
  return z
    .strictObject({
      baseUrl: addressSchema(allowsLoopback),
      auth: authSchema(kind, allowsLoopback),
      ca: z.string('must be text in PEM').superRefine(checkCertificates).optional(),
      dispatcher: objectWith<DispatcherLike>(['request'], 'an undici Dispatcher').optional(),
      fetch: functionFor<FetchLike>('a fetch function').optional(),
      timeoutMs: timeoutSchema().optional(),
      retry: retrySchema().optional(),
      logger: loggerSchema<Logger | false>().optional(),
      routes: z
        .strictObject({ unsubscribe: routeSchema().optional(), update: routeSchema().optional() })
        .optional(),
      allowInsecureLoopback: z.boolean().optional(),
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

function routeSchema() {
  return z.strictObject({
    method: z.enum(['POST', 'PUT', 'DELETE']).optional(),
    path: z
      .string()
      .regex(/^\/[\x21-\x7e]*$/, {
        abort: true,
        error: 'must begin with / and hold visible ASCII characters only',
      })
      .includes('{subscriptionId}', 'must contain {subscriptionId}, the place of the id')
      .refine((path) => !path.includes('#'), 'must not contain a fragment (#…): it is never sent to a server')
      .refine(isSentAsWritten, {
        error: 'must be written as URLs are: `..`, quotes and the like would be sent as something else',
      })
      .optional(),
  })
}

function isSentAsWritten(path: string): boolean {
  const url = `https://host.example${path.replaceAll('{subscriptionId}', '1')}`
  return new URL(url).href === url
}

function checkCertificates(ca: string, context: z.RefinementCtx): void {
  const certificates = ca.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (certificates.length === 0) {
    const message =
      'must be certificates as text in PEM (-----BEGIN CERTIFICATE-----), not the name of a file: read the file first'
    context.addIssue({ code: 'custom', message })
  }
  for (const [index, certificate] of certificates.entries()) {
    if (isCertificate(certificate)) continue
    context.addIssue({
      code: 'custom',
      message: `has a certificate that cannot be read, number ${index + 1}`,
    })
  }
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem)
    return true
  } catch {
    return false
  }
}
