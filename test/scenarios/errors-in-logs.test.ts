/** Errors of other libraries carry commands, requests and bodies: whatever fails, no line of the log repeats them. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { inspect } from 'node:util'
import { transformSync } from 'esbuild'
import { type Logger, NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { SubscriptionKeeper, type SubscriptionKeeperOptions } from 'notification-subscriber/keeper'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import winston from 'winston'
import { keep, numbered, spoolFolder } from '../spool/support.js'
import { eventually } from '../support/eventually.js'
import { fakeService, subscription } from '../support/fake-service.js'
import { isTrial, recordingLogger } from '../support/recording-logger.js'
import { post, secrets } from '../webhooks/support.js'

type Recording = ReturnType<typeof recordingLogger>

const throwing = (error: unknown) => () => {
  throw error
}

/** What fails with the error in each module, by the event that reports it. */
const failures: Record<string, (error: unknown, logger: Recording) => unknown> = {
  'request.failed': (error, logger) => {
    const fetch = () => Promise.reject(error)
    const client = fakeService().client({ fetch, logger, retry: { maxAttempts: 1 } })
    return client.unsubscribe(7).catch(() => {})
  },
  'handler.failed': (error, logger) => {
    const receiver = new DeliveryReceiver({ secrets, logger })
    return receiver.onAny(() => Promise.reject(error)).handle(post())
  },
  'secrets.failed': (error, logger) =>
    new DeliveryReceiver({ secrets: throwing(error), logger }).handle(post()),
  'callback.unanswered': (error, logger) => {
    const response = { statusCode: 0, headersSent: false, setHeader() {}, end: throwing(error) }
    const request = Object.assign(new PassThrough(), { method: 'PUT', headers: {} })
    return toNodeHandler(new DeliveryReceiver({ secrets, logger }))(request, response)
  },
  'spool.failed': async (error, logger) => {
    await using folder = await spoolFolder()
    const spool = await folder.open({ deliver: () => Promise.reject(error), logger })
    await keep(spool, numbered(1))
    await eventually(() => expect(eventsOf(logger)).toContain('spool.failed'))
    await spool.close({ timeoutMs: 0 })
  },
  'problem.began': (error, logger) => {
    const fail = () => Promise.reject(error)
    const store = { get: fail, set: fail, delete: fail, compareAndSet: fail }
    return keeperWith({ store, logger }, 'problem.began')
  },
  'subscription.failed': (error, logger) => {
    const client = fakeService().client({ fetch: () => Promise.reject(error), retry: false })
    return keeperWith({ client, logger }, 'subscription.failed')
  },
  'emulator.listener-failed': async (error, logger) => {
    vi.spyOn(console, 'error').mockImplementation((message, fields) => logger.error(fields, message))
    await using emulator = await startEmulator()
    emulator.on('created', () => Promise.reject(error))
    const callbackUrl = 'https://localhost:1/n'
    await new NotificationClient(emulator.clientOptions).createSubscription({ ...subscription, callbackUrl })
    vi.restoreAllMocks()
  },
}

/** A keeper that runs until the event is logged. */
async function keeperWith(
  options: Partial<SubscriptionKeeperOptions> & { readonly logger: Recording },
  event: string,
): Promise<void> {
  const keeper = new SubscriptionKeeper({
    ...subscription,
    client: fakeService().client(),
    name: 'coaching',
    store: new Map(),
    ...options,
  })
  keeper.start()
  await eventually(() => expect(eventsOf(options.logger)).toContain(event))
  await keeper.stop()
}

function eventsOf({ lines }: Recording): unknown[] {
  return lines.map(({ fields }) => Object(fields).event)
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

test.each(Object.entries(failures))(
  '%s has the words of the error, and nothing else of it',
  async (event, fail) => {
    const secret = 'p4ssw0rd-of-redis'
    const { logger, printed } = everyLogger()
    await fail(errorWith(secret), logger)
    await eventually(() => expect(eventsOf(logger)).toContain(event))
    const shown = inspect(logger.lines, { depth: 20, showHidden: true }) + JSON.stringify(logger.lines)
    expect(shown + JSON.stringify(printed)).not.toContain(secret)
    // The line still says what failed.
    const line = logger.lines.find(({ fields }) => Object(fields).event === event)
    expect(JSON.stringify(line)).toContain('failed')
    expect(JSON.stringify(line)).toContain('WRONGPASS')
    // No logger loses an event or its error.
    for (const texts of printed) {
      const lines = texts.map((each) => JSON.parse(each))
      expect(lines.filter((each) => !isTrial(each)).map((each) => each.event)).toEqual(eventsOf(logger))
      expect(JSON.stringify(lines.find((each) => each.event === event).err)).toContain('WRONGPASS')
    }
  },
)

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
