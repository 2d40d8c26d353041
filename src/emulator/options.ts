/** The options of the emulator, and their defaults. */
import { randomBytes, X509Certificate } from 'node:crypto'
import { isIPv6 } from 'node:net'
import { createSecureContext } from 'node:tls'
import * as z from 'zod'
import { headerName } from '../shared/headers.js'
import { type Routes, routesSchema } from '../shared/routes.js'
import { thrownBy } from '../shared/text.js'
import { configurationError, validate } from '../shared/validation.js'
import { maxDelayMs } from '../shared/waits.js'
import type { KeyAndCertificate } from './https/certificate.js'

/** Options of `startEmulator`. Each has a default. */
export interface EmulatorOptions {
  /** The tenant name in the token endpoint's path (docs/service.md, Endpoints). Default: `'emulator'`. */
  readonly domain?: string | undefined
  /** The client ID that the token endpoint accepts. Default: `'emulator-client'`. */
  readonly clientId?: string | undefined
  /** The client secret that belongs to `clientId`. Default: a new random one for each start. */
  readonly clientSecret?: string | undefined
  /** User name for Basic authorization on subscription calls (docs/service.md, Authentication). Default: `'emulator-user'`. */
  readonly username?: string | undefined
  /** The password that belongs to `username`. Default: a new random one for each start. */
  readonly password?: string | undefined
  /**
   * How the token endpoint decodes client ID and secret: `raw` takes them as they are (docs/service.md,
   * Authentication), `form-urlencoded` decodes each first (RFC 6749 section 2.3.1). Default: `'raw'`.
   */
  readonly credentialsEncoding?: 'raw' | 'form-urlencoded' | undefined
  /** Lifetime of access tokens in seconds; 0 issues tokens that have already expired. Default: 3,600. */
  readonly tokenLifetimeSeconds?: number | undefined
  /**
   * Names of request headers that create and update associate with the subscription (docs/service.md, Endpoints), in
   * any case; callbacks carry them as spelled here. Default: `['UserData']`.
   */
  readonly permittedHeaders?: readonly string[] | undefined
  /** How long a callback may take, connecting and answer included, in milliseconds. Default: 5,000. */
  readonly callbackTimeoutMs?: number | undefined
  /** Certificates as text in PEM, to trust on callbacks besides the public ones and the emulator's own. Default: none. */
  readonly callbackCa?: string | undefined
  /** The `routes` of the app's client. Any other path is a 404. Default: as documented (docs/service.md, Endpoints). */
  readonly routes?: Routes | undefined
  /** Port to listen on. Default: 0, any free one. */
  readonly port?: number | undefined
  /**
   * Address or name to listen on, for which the certificate is made, too; in a container its own name, such as that of a
   * service in Compose, or `0.0.0.0`: then every host in the network can reach the emulator. Default: `'127.0.0.1'`.
   */
  readonly host?: string | undefined
  /**
   * Private key and certificate to serve with, e.g. `emulator.tls` of an earlier run, so that `ca` has to be trusted
   * only once; or one for other names than loopback's. Together with `ca`. Default: both are made at the start.
   */
  readonly tls?: KeyAndCertificate | undefined
  /** Certificate in PEM of the authority that signed `tls`, e.g. `emulator.ca` of an earlier run. Default: made at the start. */
  readonly ca?: string | undefined
  /**
   * Also serves a page that shows all requests and callbacks, at `emulator.pageUrl`: by plain HTTP on 127.0.0.1, with
   * `true` on any free port (docs/emulator.md, The page). Default: `false`.
   */
  readonly page?:
    | boolean
    | {
        /** Port of the page on 127.0.0.1. Default: 0, any free one. */
        readonly port?: number | undefined
        /** Variables that the page shows under "Connect a client", besides its own or in their place. Default: none. */
        readonly environment?: Readonly<Record<string, string>> | undefined
        /** The file that has these variables: the page names it. Default: none, the page says to make one. */
        readonly envFile?: string | undefined
      }
    | undefined
}

export type ResolvedEmulatorOptions = z.output<typeof optionsSchema>

// Domain and client ID become parts of header values and of a path, so they hold only what both can carry.
const printable = z.string().regex(/^[\x20-\x7e]+$/, 'must be printable ASCII and not empty')

// If a text has several certificates, `X509Certificate` reads the first.
const certificate = z
  .string()
  .refine((pem) => thrownBy(() => new X509Certificate(pem)) === undefined, 'is not a PEM certificate')

const port = z.int().min(0).max(65_535)

const pageSchema = z.strictObject({
  port: port.optional(),
  environment: z.record(z.string(), z.string()).optional(),
  envFile: z.string().optional(),
})

const optionsSchema = z
  .strictObject({
    domain: printable.default('emulator'),
    clientId: printable.default('emulator-client'),
    clientSecret: z.string().min(1).default(randomSecret),
    username: z
      .string()
      .min(1)
      .regex(/^[^:]*$/, 'cannot contain a colon: Basic ends the user name there (RFC 7617)')
      .default('emulator-user'),
    password: z.string().min(1).default(randomSecret),
    credentialsEncoding: z.enum(['raw', 'form-urlencoded']).default('raw'),
    tokenLifetimeSeconds: z.int().min(0).default(3600),
    permittedHeaders: z.array(z.string().regex(headerName, 'is not a header name')).default(['UserData']),
    callbackTimeoutMs: z.int().min(1).max(maxDelayMs).default(5_000),
    callbackCa: certificate.optional(),
    routes: routesSchema().optional(),
    port: port.default(0),
    page: z.preprocess(
      (page) => (page === true ? {} : page === false ? undefined : page),
      pageSchema.optional(),
    ),
    host: z
      .string()
      .min(1)
      .refine((host) => host === '::1' || !isIPv6(host), 'must be a name, an IPv4 address or ::1')
      .default('127.0.0.1'),
    tls: z
      .strictObject({ key: z.string(), cert: z.string() })
      .refine(
        (tls) => thrownBy(() => createSecureContext(tls)) === undefined,
        'must be a private key in PEM and its certificate',
      )
      .optional(),
    ca: certificate.optional(),
  })
  .refine(({ tls, ca }) => (tls === undefined) === (ca === undefined), {
    path: ['tls'],
    error: 'and `ca` belong together: give both or neither',
  })

export function resolveOptions(options: EmulatorOptions): ResolvedEmulatorOptions {
  return validate(optionsSchema, options, configurationError('The emulator cannot start with these options'))
}

export function randomSecret(): string {
  return randomBytes(24).toString('base64url')
}
