/** Errors of other libraries carry commands, requests and bodies: whatever fails, no line of the log repeats them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { inspect } from 'node:util'
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { DeliverySpool } from 'notification-subscriber/spool'
import { DeliveryReceiver, toNodeHandler, toWebHandler } from 'notification-subscriber/webhooks'
import { expect, test, vi } from 'vitest'
import { deferred } from '../support/deferred.js'
import { eventually } from '../support/eventually.js'
import { credentials, fakeService, subscription } from '../support/fake-service.js'
import { recordingLogger } from '../support/recording-logger.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { lowEnergyDelivery } from '../webhooks/deliveries.js'
import { authenticated, post, secrets } from '../webhooks/support.js'

type Recording = ReturnType<typeof recordingLogger>

const body = JSON.stringify(lowEnergyDelivery())
const request = () =>
  new Request('https://app.example.com/n', { method: 'POST', headers: authenticated, body })

/** What fails with the error, by the event that reports it. */
const failures: Record<string, (error: unknown, logger: Recording) => unknown> = {
  'request.failed': (error, logger) => {
    const fetch = () => Promise.reject(error)
    const client = fakeService().client({ fetch, logger, retry: { maxAttempts: 1 } })
    return client.unsubscribe(7).catch(() => {})
  },
  'on-response.failed': (error, logger) =>
    fakeService()
      .client({ logger })
      .createSubscription(subscription, { onResponse: () => Promise.reject(error) }),
  'handler.failed': (error, logger) => {
    const receiver = new DeliveryReceiver({ secrets, logger })
    return receiver.onAny(() => Promise.reject(error)).handle(post())
  },
  'on-error.failed': (error, logger) => {
    const fail = () => Promise.reject(error)
    return new DeliveryReceiver({ secrets, logger, onError: fail }).onAny(fail).handle(post())
  },
  'on-invalid.failed': (error, logger) =>
    new DeliveryReceiver({ secrets, logger, onInvalid: () => Promise.reject(error) }).handle({
      ...post(),
      body: '{',
    }),
  'on-refused.failed': (error, logger) =>
    new DeliveryReceiver({ secrets, logger, onRefused: () => Promise.reject(error) }).handle(post({})),
  'wait-until.failed': async (error, logger) => {
    const handled = deferred<void>()
    const receiver = new DeliveryReceiver({ secrets, logger, ackTimeoutMs: 0 }).onAny(() => handled.promise)
    await toWebHandler(receiver, { waitUntil: () => Promise.reject(error) })(request())
    handled.resolve()
  },
  'callback.unanswered': (error, logger) => {
    const end = () => {
      throw error
    }
    const response = { statusCode: 0, headersSent: false, setHeader() {}, end }
    const unanswered = Object.assign(new PassThrough(), { method: 'PUT', headers: {} })
    return toNodeHandler(new DeliveryReceiver({ secrets, logger }))(unanswered, response)
  },
  'spool.failed': async (error, logger) => {
    await using folder = await temporaryFolder()
    const deliver = () => Promise.reject(error)
    await using spool = await DeliverySpool.open({ path: join(folder.path, 'spool'), deliver, logger })
    await spool.keep(undefined, { delivery: lowEnergyDelivery() })
    await eventually(() => expect(eventsOf(logger)).toContain('spool.failed'))
    await spool.close({ timeoutMs: 0 })
  },
  'problem.began': (error, logger) => keeperOn(error, logger, {}),
  'listener.failed': (error, logger) =>
    keeperOn(new Error('the store is away'), logger, { onProblem: () => Promise.reject(error) }),
  'emulator.listener-failed': async (error, logger) => {
    vi.spyOn(console, 'error').mockImplementation((message, fields) => logger.error(fields, message))
    await using emulator = await startEmulator()
    emulator.on('created', () => Promise.reject(error))
    await new NotificationClient({ ...emulator.clientOptions }).createSubscription({
      ...subscription,
      callbackUrl: 'https://localhost:1/n',
    })
    vi.restoreAllMocks()
  },
}

async function keeperOn(error: unknown, logger: Recording, options: { onProblem?: () => unknown }) {
  const fail = () => Promise.reject(error)
  const keeper = new SubscriptionKeeper({
    ...subscription,
    client: fakeService().client(),
    name: 'coaching',
    store: { get: fail, set: fail, delete: fail, compareAndSet: fail },
    parameters: { token: credentials.clientSecret },
    logger,
    ...options,
  })
  keeper.start()
  const event = options.onProblem ? 'listener.failed' : 'problem.began'
  await eventually(() => expect(eventsOf(logger)).toContain(event))
  await keeper.stop()
}

function eventsOf({ lines }: Recording): unknown[] {
  return lines.map(([fields]) => Object(fields).event)
}

/** The error of a library that was given a secret. */
function errorWith(secret: string): Error {
  const own = {
    command: { name: 'auth', args: ['app', secret] },
    config: { headers: { authorization: secret } },
  }
  const cause = Object.assign(new Error(`WRONGPASS at redis://app:${secret}@10.0.0.7:6379`), own)
  const each = Object.assign(new Error('READONLY', { cause }), own)
  return Object.assign(
    new AggregateError([each, cause], `all of rediss://:${secret}@db failed`, { cause }),
    own,
  )
}

test.each(Object.entries(failures))('%s', async (event, fail) => {
  const secret = 'p4ssw0rd-of-redis'
  const logger = recordingLogger()
  await fail(errorWith(secret), logger)
  await eventually(() => expect(eventsOf(logger)).toContain(event))
  const shown = inspect(logger.lines, { depth: 20, showHidden: true }) + JSON.stringify(logger.lines)
  expect(shown).not.toContain(secret)
  // The line still says what failed.
  const line = logger.lines.find(([fields]) => Object(fields).event === event)
  expect(JSON.stringify(line)).toContain('failed')
  expect(JSON.stringify(line)).toContain('WRONGPASS')
})

test('nothing but logger.ts writes to a logger or to the console', () => {
  const root = join(import.meta.dirname, '../../src')
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  )
  const writing = files.filter((file) => {
    const code = readFileSync(join(root, file), 'utf8').replace(/^\s*(?:\/?\*|\/\/).*$/gm, '')
    return /\bconsole\.\w+\(|\blogger\??(?:\.(?:debug|info|warn|error)\(|\[)/.test(code)
  })
  expect(writing).toEqual(['logger.ts'])
})
