import { pino } from 'pino'
import { describe, expect, test, vi } from 'vitest'
import { callLogged, logOf } from '../src/logger.js'
import { recordingLogger } from './support/recording-logger.js'

describe.each([
  [
    'throws',
    () => {
      throw 'why'
    },
  ],
  ['rejects', () => Promise.reject('why')],
])('what %s', (_name, fail) => {
  test('as a function of the user is one line', async () => {
    const log = vi.fn()
    await callLogged(log, { event: 'listener.failed' }, 'A listener failed', fail)
    expect(log.mock.calls).toEqual([['error', { event: 'listener.failed', err: 'why' }, 'A listener failed']])
  })

  test('as a logger breaks nothing', async () => {
    const log = logOf({ debug: fail, info: fail, warn: fail, error: fail })
    await log('warn', { event: 'request.failed' }, 'Request got no answer')
  })
})

test('a function that works is called at once, and awaited', async () => {
  const log = vi.fn()
  let isDone = false
  const called = callLogged(log, { event: 'listener.failed' }, 'A listener failed', async () => {
    await undefined
    isDone = true
  })
  expect(isDone).toBe(false)
  await called
  expect(isDone).toBe(true)
  expect(log).not.toHaveBeenCalled()
})

test('a line has no long text: names come from senders, rosters and stores', () => {
  const { lines, ...logger } = recordingLogger()
  const long = 'x'.repeat(100_000)
  const fields = { usernames: [long, 'alice'], issues: [{ path: [long, 3], message: long }], isLong: true }
  logOf(logger)('error', { event: 'handler.failed', ...fields }, long)
  expect(JSON.stringify(lines).length).toBeLessThan(6_000)
  expect(lines[0]?.fields).toMatchObject({ usernames: [expect.any(String), 'alice'], isLong: true })
})

/** An object that throws whatever is asked of it. */
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

describe('an error in a line is a description', () => {
  const logged = (err: unknown) => {
    const { lines, ...logger } = recordingLogger()
    logOf(logger)('error', { event: 'handler.failed', err }, 'Handler failed')
    const [{ fields } = { fields: {} }] = lines
    return 'err' in fields ? fields.err : expect.fail('err is missing')
  }
  const withFields = (error: Error) =>
    Object.assign(error, { command: { args: ['s3cret'] }, config: 's3cret' })

  test('of name, message, code, stack and cause, without what else the error has', () => {
    const cause = withFields(new Error('no route'))
    const error = withFields(new TypeError('fetch failed', { cause }))
    expect(logged(Object.assign(error, { code: 'EFETCH' }))).toEqual({
      name: 'TypeError',
      message: 'fetch failed',
      code: 'EFETCH',
      stack: error.stack,
      cause: { name: 'Error', message: 'no route', stack: cause.stack },
    })
  })

  test('of an AggregateError: also of its first five errors', () => {
    const errors = Array.from({ length: 9 }, (_, index) => withFields(new Error(`no route ${index}`)))
    const description = logged(new AggregateError(errors, 'all failed'))
    expect(description).toMatchObject({ name: 'AggregateError', message: 'all failed' })
    expect(Object(description).errors.map(({ message }: Error) => message)).toEqual(
      [0, 1, 2, 3, 4].map((index) => `no route ${index}`),
    )
    expect(JSON.stringify(description)).not.toContain('s3cret')
  })

  test.each([
    ['redis://app:s3cret@10.0.0.7:6379/0', 'redis://…@10.0.0.7:6379/0'],
    ['rediss://:s3/cr?et#@db.example.com', 'rediss://…@db.example.com'],
    ['https://app:s3cret@app.example.com/n?a=b@c', 'https://…@app.example.com/n?a=b@c'],
    ['https://s3cret@app.example.com', 'https://…@app.example.com'],
    ['Server=db;Password=s3cret;Encrypt=true', 'Server=db;Password=…;Encrypt=true'],
    ['refused {"client_secret": "s3cret"}', 'refused {"client_secret": "…"}'],
    ['{"authorization":"Basic dXNlcjpzM2NyZXQ="}', '{"authorization":"… …"}'],
    ['Headers.append: "Bearer s3cret-0815\u0000" is invalid', 'Headers.append: "Bearer …\u0000" is invalid'],
    ['jwt malformed: eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln', 'jwt malformed: …'],
    [
      'Basic credentials end the name there, and token: is missing',
      'Basic credentials end the name there, and token: is missing',
    ],
    ['postgres://db/app?user=app&password=s3cret', 'postgres://db/app?user=app&password=…'],
    ['https://app.example.com/n?access_token=s3cret&x=1', 'https://app.example.com/n?access_token=…&x=1'],
    ["a host=db user=app password='s3cret' db", "a host=db user=app password='…' db"],
    ['YAML with token: "s3cret"', 'YAML with token: "…"'],
    ['X-API-Key: s3cret', 'X-API-Key: …'],
    ['mysqldump --password s3cret -u app', 'mysqldump --password … -u app'],
    [
      'ERR unknown command `HELLO`, with args beginning with: `3` `AUTH` `app` `s3cret`',
      'ERR unknown command `HELLO`, with args beginning with: …',
    ],
    ['https://app.example.com:8443/@scope/x', 'https://app.example.com:8443/@scope/x'],
    [
      'file:///srv/node_modules/@redis/client/index.js:7:3',
      'file:///srv/node_modules/@redis/client/index.js:7:3',
    ],
  ])('with no password in an address: %s', (address, shown) => {
    const error = new Error(`connect to\n${address}\nfailed`)
    const description = logged(Object.assign(error, { name: address, code: address }))
    expect(description).toMatchObject({ message: `connect to\n${shown}\nfailed`, name: shown, code: shown })
    expect(Object(description).stack).toContain(`${shown}\nfailed`)
  })

  test('that ends, also of an error that is its own cause, is among its own errors, or is long', () => {
    const error = new AggregateError([], 'x'.repeat(1e6))
    error.cause = error
    for (let count = 0; count < 9; count++) error.errors.push(error)
    expect(JSON.stringify(logged(error)).length).toBeLessThan(100_000)
  })

  test.each([
    ['no error', 'why', { name: 'string', message: 'why' }],
    ['nothing', undefined, { name: 'undefined', message: 'undefined' }],
    ['an object', { password: 's3cret' }, { name: 'object', message: '[object Object]' }],
    ['an error that cannot be read', revoked(), { name: 'object', message: 'no message' }],
    [
      'an error whose errors cannot be read',
      { errors: revoked() },
      { name: 'object', message: '[object Object]' },
    ],
  ])('of %s, too', (_, thrown, description) => {
    expect(logged(thrown)).toEqual(description)
  })

  test('whose name pino shows as its type', () => {
    const lines: string[] = []
    const logger = pino({}, { write: (line) => lines.push(line) })
    logOf(logger)('error', { event: 'handler.failed', err: new RangeError('too far') }, 'Handler failed')
    expect(JSON.parse(lines.join(''))).toMatchObject({ err: { type: 'RangeError', message: 'too far' } })
  })
})
