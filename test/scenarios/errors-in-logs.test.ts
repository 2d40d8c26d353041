/** Errors of other libraries carry commands, requests and bodies: whatever fails, no line of the log repeats them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { inspect } from 'node:util'
import { transformSync } from 'esbuild'
import { type Logger, NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { SubscriptionKeeper, type SubscriptionKeeperOptions } from 'notification-subscriber/keeper'
import { DeliveryReceiver, toNodeHandler, toWebHandler } from 'notification-subscriber/webhooks'
import { pino } from 'pino'
import { afterEach, expect, test, vi } from 'vitest'
import winston from 'winston'
import { filesWith, keep, numbered, realTime, spoolFolder } from '../spool/support.js'
import { deferred } from '../support/deferred.js'
import { eventually } from '../support/eventually.js'
import { credentials, fakeService, subscription } from '../support/fake-service.js'
import { isTrial, recordingLogger } from '../support/recording-logger.js'
import { lowEnergyDelivery } from '../webhooks/deliveries.js'
import { authenticated, post, secrets } from '../webhooks/support.js'

type Recording = ReturnType<typeof recordingLogger>

const body = JSON.stringify(lowEnergyDelivery())
const request = () =>
  new Request('https://app.example.com/n', { method: 'POST', headers: authenticated, body })

const throwing = (error: unknown) => () => {
  throw error
}

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
    const response = { statusCode: 0, headersSent: false, setHeader() {}, end: throwing(error) }
    const unanswered = Object.assign(new PassThrough(), { method: 'PUT', headers: {} })
    return toNodeHandler(new DeliveryReceiver({ secrets, logger }))(unanswered, response)
  },
  'secrets.failed': (error, logger) =>
    new DeliveryReceiver({ secrets: throwing(error), logger }).handle(post()),
  'token.refresh-failed': async (error, logger) => {
    vi.useFakeTimers()
    const service = fakeService()
    const client = service.client({ logger })
    await client.getAccessToken()
    service.onToken = () => Promise.reject(error)
    vi.advanceTimersByTime(0.9 * 3_600_000)
    await client.getAccessToken()
  },
  'spool.failed': (error, logger) => spoolFailing(error, logger, 'spool.failed'),
  'spool.stuck': (error, logger) => spoolFailing(error, logger, 'spool.stuck'),
  'spool.discarded': (error, logger) => spoolFailing(error, logger, 'spool.discarded', () => 'discard'),
  'spool.dead-lettered': (error, logger) =>
    spoolFailing(error, logger, 'spool.dead-lettered', () => 'dead-letter'),
  'spool.callback-failed': (error, logger) =>
    spoolFailing(new Error('the queue is away'), logger, 'spool.callback-failed', () =>
      Promise.reject(error),
    ),
  'spool.read-failed': (error, logger) => diskFailing(error, logger, 'spool.read-failed', 'read'),
  'spool.write-failed': (error, logger) => diskFailing(error, logger, 'spool.write-failed', 'write'),
  'problem.began': (error, logger) => keeperOn(() => Promise.reject(error), logger, 'problem.began'),
  'listener.failed': (error, logger) => {
    const fail = () => Promise.reject(new Error('the store is away'))
    return keeperOn(fail, logger, 'listener.failed', { onProblem: () => Promise.reject(error) })
  },
  'subscription.failed': (error, logger) => {
    const client = fakeService().client({ fetch: () => Promise.reject(error), retry: false })
    return keeperOn(undefined, logger, 'subscription.failed', { client })
  },
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

/** A keeper whose store fails, if a failure is given. */
async function keeperOn(
  fail: (() => Promise<never>) | undefined,
  logger: Recording,
  event: string,
  options: Partial<SubscriptionKeeperOptions> = {},
) {
  const keeper = new SubscriptionKeeper({
    ...subscription,
    client: fakeService().client(),
    name: 'coaching',
    store: fail ? { get: fail, set: fail, delete: fail, compareAndSet: fail } : new Map(),
    parameters: { token: credentials.clientSecret },
    logger,
    ...options,
  })
  keeper.start()
  await eventually(() => expect(eventsOf(logger)).toContain(event))
  await keeper.stop()
}

/** A spool whose deliveries fail, until the event is logged. */
async function spoolFailing(error: unknown, logger: Recording, event: string, onStuck?: () => unknown) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
  await using folder = await spoolFolder()
  const spool = await folder.open({ deliver: () => Promise.reject(error), logger, onStuck })
  await keep(spool, numbered(1))
  while (!eventsOf(logger).includes(event)) {
    await vi.advanceTimersByTimeAsync(60_000)
    await realTime(5)
  }
  vi.useRealTimers()
  await spool.close({ timeoutMs: 0 })
}

/** A spool on a disk that fails to do this. */
async function diskFailing(error: unknown, logger: Recording, event: string, operation: string) {
  await using folder = await spoolFolder()
  await folder.leave(numbered(1))
  const before = (name: string) => {
    if (name === operation) throw error
  }
  const spool = await folder.open({ deliver: () => {}, logger }, filesWith({ before }))
  await eventually(() => expect(eventsOf(logger)).toContain(event))
  await spool.close({ timeoutMs: 0 })
}

function eventsOf({ lines }: Recording): unknown[] {
  return lines.map(([fields]) => Object(fields).event)
}

/** Keeps its lines, and gives them to pino and, by the wrapper of the page, to winston: `printed` is what they write. */
function everyLogger() {
  const recording = recordingLogger()
  const pinoLines: string[] = []
  const winstonLines: string[] = []
  const write = (line: Buffer, _encoding: string, done: () => void) => {
    winstonLines.push(String(line))
    done()
  }
  const winstonLogger = winston.createLogger({
    level: 'debug',
    format: winston.format.json(),
    transports: [new winston.transports.Stream({ stream: new Writable({ write }) })],
  })
  const loggers: Logger[] = [
    recording,
    pino({ level: 'debug' }, { write: (line) => pinoLines.push(line) }),
    wrapperOfPage(winstonLogger),
  ]
  const at = (level: keyof Logger) => (fields: object, message: string) => {
    for (const logger of loggers) logger[level](fields, message)
  }
  return {
    logger: {
      lines: recording.lines,
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
    },
    printed: [pinoLines, winstonLines],
  }
}

const page = readFileSync(join(import.meta.dirname, '../../docs/observability.md'), 'utf8')

function wrapperOfPage(winstonLogger: winston.Logger): Logger {
  const [, block = ''] = /<!-- given: winstonLogger -->\n```ts\n(.*?)```/s.exec(page) ?? []
  const { code } = transformSync(block, { loader: 'ts' })
  return new Function('winstonLogger', `${code}; return logger`)(winstonLogger)
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

afterEach(() => void vi.useRealTimers())

test.each(Object.entries(failures))('%s', async (event, fail) => {
  const secret = 'p4ssw0rd-of-redis'
  const { logger, printed } = everyLogger()
  await fail(errorWith(secret), logger)
  await eventually(() => expect(eventsOf(logger)).toContain(event))
  const shown = inspect(logger.lines, { depth: 20, showHidden: true }) + JSON.stringify(logger.lines)
  expect(shown + JSON.stringify(printed)).not.toContain(secret)
  // The line still says what failed.
  const line = logger.lines.find(([fields]) => Object(fields).event === event)
  expect(JSON.stringify(line)).toContain('failed')
  expect(JSON.stringify(line)).toContain('WRONGPASS')
  // No logger loses an event or its error.
  for (const texts of printed) {
    const lines = texts.map((each) => JSON.parse(each))
    expect(lines.filter((each) => !isTrial(each)).map((each) => each.event)).toEqual(eventsOf(logger))
    expect(JSON.stringify(lines.find((each) => each.event === event).err)).toContain('WRONGPASS')
  }
})

test('every event that has an `err` is tried above', () => {
  // These two are logged for bugs of the keeper only.
  const untried = ['keeper.broken', 'reconcile.broken']
  const rows = page.matchAll(/^\| `([a-z.-]+)` \| \w+ \|[^|]*(?:`err`|as `spool\.failed`)/gm)
  const documented = [...rows].map(([, event]) => event)
  expect(documented.toSorted()).toEqual([...Object.keys(failures), ...untried].toSorted())
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
  // The page shows a program that does.
  expect(writing.sort()).toEqual(['emulator/page/program.ts', 'logger.ts'])
})
