/** An app whose own code is ESM and that uses a library which requires the package: both builds are loaded. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import * as main from 'notification-subscriber'
import * as emulated from 'notification-subscriber/emulator'
import * as webhooks from 'notification-subscriber/webhooks'

const require = createRequire(import.meta.url)
const required = {
  main: require('notification-subscriber'),
  webhooks: require('notification-subscriber/webhooks'),
  emulated: require('notification-subscriber/emulator'),
}

// Else nothing of the below would be proved.
assert.notEqual(main.NotificationError, required.main.NotificationError)

// What logs and stack traces show.
const { name: packageName, exports } = require('notification-subscriber/package.json')
for (const path of Object.keys(exports).filter((path) => !path.endsWith('.json'))) {
  const entryPoint = packageName + path.slice(1)
  // What Jest's automock asks for.
  assert.equal(require(entryPoint).__esModule, true)
  for (const loaded of [await import(entryPoint), require(entryPoint)]) {
    for (const [name, exported] of Object.entries(loaded)) {
      if (typeof exported === 'function') assert.equal(exported.name, name)
    }
  }
}

const invalid = { imported: thrownBy(webhooks), required: thrownBy(required.webhooks) }
for (const error of Object.values(invalid)) {
  for (const loaded of [main, webhooks, required.main, required.webhooks]) {
    assert(error instanceof loaded.InvalidDeliveryError)
    assert(error instanceof loaded.NotificationError)
    assert(!(error instanceof loaded.ConfigurationError))
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
  const statusOf = async (body) =>
    (await handle(new Request('http://localhost', { method: 'POST', body }))).status
  assert.equal(await statusOf('too long'), 413)
  assert.equal(await statusOf('none'), 204)
  assert.deepEqual(problems, ['the body is not JSON'])
}

console.log('The story is over')

function classesOf(entryPoint) {
  return Object.fromEntries(Object.entries(entryPoint).filter(([name]) => name.endsWith('Error')))
}

function thrownBy({ parseDelivery }) {
  try {
    parseDelivery('{}')
  } catch (error) {
    return error
  }
}
