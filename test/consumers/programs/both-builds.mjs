/** An app whose own code is ESM and that uses a library which requires the package: both builds are loaded. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import * as main from 'notification-subscriber'
import * as emulated from 'notification-subscriber/emulator'
import * as redis from 'notification-subscriber/redis'
import * as spool from 'notification-subscriber/spool'
import * as webhooks from 'notification-subscriber/webhooks'

const require = createRequire(import.meta.url)
const required = {
  main: require('notification-subscriber'),
  webhooks: require('notification-subscriber/webhooks'),
  emulated: require('notification-subscriber/emulator'),
  redis: require('notification-subscriber/redis'),
  spool: require('notification-subscriber/spool'),
}

// Else nothing of the below would be proved.
assert.notEqual(main.NotificationError, required.main.NotificationError)

// What logs and stack traces show.
for (const door of [main, webhooks, emulated, redis, spool, ...Object.values(required)]) {
  for (const [name, exported] of Object.entries(door)) {
    if (typeof exported === 'function') assert.equal(exported.name, name)
  }
}

const invalid = { imported: thrownBy(webhooks), required: thrownBy(required.webhooks) }
for (const error of Object.values(invalid)) {
  for (const doors of [main, webhooks, required.main, required.webhooks]) {
    assert(error instanceof doors.InvalidDeliveryError)
    assert(error instanceof doors.NotificationError)
    assert(!(error instanceof doors.ConfigurationError))
  }
}
assert(!(new TypeError() instanceof required.main.NotificationError))

const errorClasses = classesOf(main)
assert.deepEqual(Object.keys(errorClasses), Object.keys(classesOf(required.main)))
for (const [name, requiredClass] of Object.entries(classesOf(required.main))) {
  assert(Object.create(errorClasses[name].prototype) instanceof requiredClass)
  assert(Object.create(requiredClass.prototype) instanceof errorClasses[name])
}

for (const [startEmulator, errors] of [
  [emulated.startEmulator, required.main],
  [required.emulated.startEmulator, main],
]) {
  await assert.rejects(startEmulator({ port: -1 }), (error) => error instanceof errors.ConfigurationError)
}

// A receiver of one build behind an adapter of the other: what breaks a body off means the same to both.
for (const [{ DeliveryReceiver }, { toWebHandler }] of [
  [webhooks, required.webhooks],
  [required.webhooks, webhooks],
]) {
  const problems = []
  const onInvalid = (error) => problems.push(error.issues[0].message)
  const handle = toWebHandler(
    new DeliveryReceiver({ allowUnauthenticated: true, maxBodyBytes: 5, onInvalid, logger: false }),
  )
  const statusOf = async (body, headers = {}) =>
    (await handle(new Request('http://localhost', { method: 'POST', body, headers }))).status
  assert.equal(await statusOf('too long'), 413)
  assert.equal(await statusOf('{}', { 'content-encoding': 'br' }), 204)
  assert.deepEqual(problems, ['the body is encoded with "br", not with gzip or deflate'])
}

console.log('The story is over')

function classesOf(door) {
  return Object.fromEntries(Object.entries(door).filter(([name]) => name.endsWith('Error')))
}

function thrownBy({ parseDelivery }) {
  try {
    parseDelivery('{}')
  } catch (error) {
    return error
  }
}
