/** The emulator on msw. */
import assert from 'node:assert/strict'
import type { HttpHandler } from 'msw'
import { setupServer } from 'msw/node'
import { NotificationClient } from 'notification-subscriber'
import { emulatorHandlers, startEmulator } from 'notification-subscriber/emulator'

const emulator = await startEmulator()
const handlers: HttpHandler[] = emulatorHandlers(emulator)
// @ts-expect-error: were msw's types not found, the handlers would be any.
const wrong: number[] = emulatorHandlers(emulator)
assert.equal(wrong.length, handlers.length)
const server = setupServer(...emulatorHandlers(emulator))
server.listen({ onUnhandledRequest: 'error' })

const { dispatcher: _, ...options } = emulator.clientOptions
const client = new NotificationClient({ ...options, fetch: globalThis.fetch })
assert.equal((await client.getAccessToken()).split('.').length, 3)

await client.close()
server.close()
await emulator.close()
console.log('The story is over')
