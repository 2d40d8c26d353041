/** The emulator as request handlers for msw, for code that is tested on msw already. */
// Not `{ createRequire }`: webpack recognises that one, and would warn of msw wherever it is not installed.
import nodeModule from 'node:module'
import type * as Msw from 'msw'
import { ConfigurationError } from '../errors.js'
import type { Emulator } from './emulator.js'
import { ConnectionReset } from './service/faults.js'

/**
 * msw request handlers that let the emulator answer everything under its `baseUrl` and `authUrl`, without a
 * connection. Give the client `fetch: globalThis.fetch` with them: msw does not see requests made by undici.
 *
 * @throws `ConfigurationError` if msw, an optional peer dependency, is not installed.
 *
 * @example
 * ```ts
 * import { setupServer } from 'msw/node'
 *
 * const server = setupServer(...emulatorHandlers(emulator))
 * server.listen()
 * ```
 */
export function emulatorHandlers(emulator: Emulator): Msw.HttpHandler[] {
  const { http } = loadMsw()
  // The token endpoint is there too: an emulator has one address.
  return [
    http.all(`${emulator.baseUrl}/*`, async ({ request }) => {
      try {
        return await emulator.fetch(request)
      } catch (error) {
        if (error instanceof ConnectionReset) return Response.error()
        throw error
      }
    }),
  ]
}

/** Loaded on demand, so that the emulator works where msw is not installed. */
function loadMsw(): typeof Msw {
  try {
    // The CommonJS build has __filename; there, a browser-like test environment can falsify import.meta.url.
    return nodeModule.createRequire(typeof __filename === 'string' ? __filename : import.meta.url)('msw')
  } catch (cause) {
    const message = 'emulatorHandlers() needs msw, which cannot be loaded: npm install --save-dev msw'
    throw new ConfigurationError(message, { issues: [{ path: [], message }] }, { cause })
  }
}
