/** The emulator on msw. */
import assert from 'node:assert/strict'
import { type HttpHandler, http } from 'msw'
import { setupServer } from 'msw/node'
import { NotificationClient } from 'notification-subscriber'
import { emulatorHandlers, startEmulator } from 'notification-subscriber/emulator'

const emulator = await startEmulator()
const handlers: HttpHandler[] = emulatorHandlers(emulator, http)
// @ts-expect-error: the handlers have msw's own type, not any.
const wrong: number[] = emulatorHandlers(emulator, http)
assert.equal(wrong.length, handlers.length)
const server = setupServer(...emulatorHandlers(emulator, http))
server.listen({ onUnhandledRequest: 'error' })

const { dispatcher: _, ...options } = emulator.clientOptions
const client = new NotificationClient({ ...options, fetch: globalThis.fetch })
assert.equal((await client.getAccessToken()).split('.').length, 3)

await client.close()
server.close()
await emulator.close()
console.log('The story is over')
