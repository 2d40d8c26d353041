/** The emulator as request handlers for msw, for code that is tested on msw already. */
import * as z from 'zod'
import { urlProblem, withoutEndingSlashes } from '../shared/addresses.js'
import { configurationError, objectWith, validate } from '../shared/validation.js'
import type { Emulator } from './emulator.js'
import { ConnectionReset } from './faults.js'

/** The part of msw's `http` that {@link emulatorHandlers} uses. */
export interface MswHttp<Handler> {
  /** Handles requests of any method whose address matches. */
  all(address: RegExp, resolver: (info: { request: Request }) => Promise<Response>): Handler
}

/**
 * msw request handlers that let the emulator answer, without a connection, everything under its own `baseUrl` and
 * under the addresses given. Give the client `fetch: globalThis.fetch`: msw does not see requests made by undici, and
 * without it they leave the process. Domain, client ID and secret of an app's configuration are options of `startEmulator`.
 *
 * @param http - `http` of msw
 * @returns one handler for each address, of the type that `http` makes
 * @throws `ConfigurationError` without `http`, or for a `baseUrl` or `authUrl` that cannot be one
 *
 * @example
 * ```ts
 * import { http } from 'msw'
 * import { setupServer } from 'msw/node'
 *
 * const server = setupServer(
 *   ...emulatorHandlers(emulator, http, { baseUrl: 'https://notifications.example.com' }),
 * )
 * server.listen()
 * ```
 */
export function emulatorHandlers<Handler>(
  emulator: Emulator,
  http: MswHttp<Handler>,
  options: {
    /** Base address of the notification service, as the app has it. Default: only the emulator's own. */
    readonly baseUrl?: string | undefined
    /** Base address of the authorization server, as the app has it. Default: only the emulator's own. */
    readonly authUrl?: string | undefined
  } = {},
): Handler[] {
  validate(argumentsSchema, { ...options, http }, configurationError('emulatorHandlers cannot be made'))
  const addresses = [emulator.baseUrl, options.baseUrl, options.authUrl]
    .flatMap((address) => (address === undefined ? [] : [withoutEndingSlashes(new URL(address).href)]))
    // The first handler that matches answers, and one address may begin with another.
    .sort((a, b) => b.length - a.length)
  return [...new Set(addresses)].map((address) =>
    http.all(new RegExp(`^${escaped(address)}/`), async ({ request }) => {
      try {
        return await emulator.fetch(
          new Request(emulator.baseUrl + request.url.slice(address.length), request),
        )
      } catch (error) {
        // Of a caller that waits no longer, too: msw would print the error.
        if (error instanceof ConnectionReset || request.signal.aborted) return Response.error()
        throw error
      }
    }),
  )
}

const addressSchema = z
  .string()
  .superRefine((address, context) => {
    const message = urlProblem(address, true)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })
  .optional()

const argumentsSchema = z.strictObject({
  http: objectWith(['all'], "an export of msw: `import { http } from 'msw'`"),
  baseUrl: addressSchema,
  authUrl: addressSchema,
})

function escaped(address: string): string {
  return address.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}
