import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EmulatorOperation, Fault } from 'notification-subscriber/emulator'
import { afterEach, expect, test, vi } from 'vitest'
import { created } from '../emulator/support.js'
import { expectPage } from '../support/message-page.js'
import { bodyMark, checkFixture } from './check-support.js'
import { call, start } from './support.js'

const fixture = checkFixture()
const callbackUrl = 'https://app.example.com/notifications'
const flags = ['--type', 'behavioral', '--user', 'alice', '--callback-url', callbackUrl]

afterEach(() => {
  fixture.emulator.clearFaults()
  for (const { subscriptionId } of fixture.emulator.subscriptions)
    fixture.emulator.endSubscription(subscriptionId)
})

/** Runs a command, and asserts that no secret is printed. */
async function run(command: string, args: readonly string[], changes: Record<string, string> = {}) {
  const env = { CALLBACK_TOKEN: 'hush-of-a-variable', ...fixture.environment(changes) }
  const finished = await call([command, ...args], env)
  const { emulator } = fixture
  for (const secret of ['hush', emulator.clientSecret, emulator.password]) {
    expect(finished.stdout + finished.stderr).not.toContain(secret)
  }
  return finished
}

test('subscribe prints the ID of a subscription with these types, users and parameters', async () => {
  const file = join(fixture.folder, 'tenant')
  await writeFile(file, 'hush-of-a-file\n')
  const parameters = ['--parameter', 'token=env:CALLBACK_TOKEN', '--parameter', `tenant=@${file}`]
  const more = ['--type', 'call-score,conversation-ai', '--user', 'bob,carol', ...parameters]
  const { code, stdout, stderr } = await run('subscribe', [...flags, ...more])
  expect([code, stderr]).toEqual([0, ''])
  const [subscription] = fixture.emulator.subscriptions
  expect(subscription).toMatchObject({
    callbackUrl,
    notificationTypes: ['behavioral', 'call-score', 'conversation-ai'],
    usernames: ['alice', 'bob', 'carol'],
    parameters: { token: 'hush-of-a-variable', tenant: 'hush-of-a-file' },
  })
  expect(stdout).toBe(
    `✔ Subscription ${subscription?.subscriptionId} is active: behavioral, call-score, conversation-ai of ` +
      `alice, bob, carol, to ${callbackUrl}`,
  )
})

test('variables can be in the file of --dotenv, also behind the mark of an editor; the environment goes before it', async () => {
  const file = join(fixture.folder, 'parameter.env')
  await writeFile(file, '\ufeffRECEIVER_TOKEN=hush-of-dotenv\nCALLBACK_TOKEN=hush-too\n')
  const parameters = ['--parameter', 'token=env:RECEIVER_TOKEN', '--parameter', 'other=env:CALLBACK_TOKEN']
  await run('subscribe', [...flags, '--dotenv', file, ...parameters])
  const values = { token: 'hush-of-dotenv', other: 'hush-of-a-variable' }
  expect(fixture.emulator.subscriptions).toMatchObject([{ parameters: values }])
})

test('subscribe says that callbacks without a parameter carry no secret, and hides the query of the address', async () => {
  const address = ['--callback-url', `${callbackUrl}?key=hush`]
  const { code, stdout } = await run('subscribe', ['--type', 'behavioral', '--user', 'alice', ...address])
  expect(code).toBe(0)
  expect(stdout).toMatch(/\?…\n {2}→ .*--parameter$/)
})

test('--recreate-if-exists replaces an identical subscription', async () => {
  const before = await created(fixture.emulator, { url: callbackUrl, types: 'behavioral', users: 'alice' })
  const { code, stdout } = await run('subscribe', [...flags, '--recreate-if-exists', '--json'])
  expect([code, JSON.parse(stdout)]).toEqual([0, { event: 'subscribed', subscriptionId: before + 1 }])
  expect(fixture.emulator.subscriptions).toMatchObject([{ subscriptionId: before + 1 }])
})

test('update changes the parameter that it names', async () => {
  const id = String(await created(fixture.emulator))
  const args = ['--parameter', 'token=env:CALLBACK_TOKEN']
  const { code, stdout, stderr } = await run('update', [id, ...args])
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toBe(`✔ Subscription ${id} was updated: callbacks from now on carry the new token`)
  expect(fixture.emulator.subscriptions[0]?.parameters).toMatchObject({ token: 'hush-of-a-variable' })
  const json = await run('update', ['--json', ...args, id])
  expect(JSON.parse(json.stdout)).toEqual({ event: 'updated', subscriptionId: Number(id) })
})

test('unsubscribe ends a subscription', async () => {
  const ids = [await created(fixture.emulator), await created(fixture.emulator, { users: 'bob' })]
  expect(await run('unsubscribe', [`${ids[0]}`])).toEqual({
    code: 0,
    stdout: `✔ Subscription ${ids[0]} has ended`,
    stderr: '',
  })
  const { stdout } = await run('unsubscribe', ['--json', `${ids[1]}`])
  expect(JSON.parse(stdout)).toEqual({ event: 'unsubscribed', subscriptionId: ids[1] })
  expect(fixture.emulator.subscriptions).toEqual([])
})

const commands = {
  token: ['token', []],
  create: ['subscribe', [...flags, '--parameter', 'token=env:CALLBACK_TOKEN']],
  update: ['update', ['7', '--parameter', 'token=env:CALLBACK_TOKEN']],
  unsubscribe: ['unsubscribe', ['7']],
} as const satisfies Record<EmulatorOperation, readonly [string, readonly string[]]>

/** How each command fails: the operation, the fault, the variables that are wrong, and further flags. */
type Failure = [EmulatorOperation, (Fault | undefined)?, Record<string, string>?, (readonly string[])?]

test('messages about a command that fails: the reviewed page', async () => {
  const { emulator } = fixture
  await created(emulator, { url: callbackUrl, types: 'behavioral', users: 'alice' })
  const echo = `${bodyMark} hush-of-a-variable ${emulator.clientSecret}`
  const failures: Record<string, Failure> = {
    'token: wrong secret': ['token', undefined, { NOTIFICATION_CLIENT_SECRET: 'hush' }],
    'token: wrong domain': ['token', undefined, { NOTIFICATION_DOMAIN: 'acme' }],
    'token: 500': ['token', { status: 500 }],
    'token: 501': ['token', { status: 501 }],
    'token: answer that is no token': ['token', { malformedBody: '{}' }],
    'subscribe: a subscription exists': ['create'],
    'subscribe: an overlap': ['create', undefined, {}, ['--user', 'bob', '--recreate-if-exists']],
    'subscribe: 400 that repeats secrets': ['create', { status: 400, body: echo }],
    'subscribe: 401': ['create', { status: 401 }],
    'subscribe: 403': ['create', { status: 403 }],
    'subscribe: 503': ['create', { status: 503 }],
    'subscribe: 500': ['create', { status: 500 }],
    'subscribe: 501': ['create', { status: 501 }],
    'subscribe: no usable ID': ['create', { status: 201, body: '{}' }],
    'subscribe: wrong secret': ['create', undefined, { NOTIFICATION_CLIENT_SECRET: 'hush' }],
    'subscribe: nothing listens': ['create', undefined, { NOTIFICATION_BASE_URL: 'https://127.0.0.1:1' }],
    'subscribe: untrusted certificate': ['create', undefined, { NOTIFICATION_CA_FILE: '' }],
    'update: 404': ['update'],
    'update: 405': ['update', { status: 405 }],
    'update: 302': ['update', { status: 302 }],
    'unsubscribe: 404': ['unsubscribe'],
    'unsubscribe: 501': ['unsubscribe', { status: 501 }],
    'unsubscribe: 502': ['unsubscribe', { status: 502 }],
  }
  const messages: Record<string, string> = {}
  for (const [what, [operation, fault, changes, more = []]] of Object.entries(failures)) {
    // As often as a call is repeated.
    if (fault) emulator.injectFault(operation, fault, { times: Number.POSITIVE_INFINITY })
    const [command, args] = commands[operation]
    const { code, stdout, stderr } = await run(command, ['--json', ...args, ...more], changes)
    emulator.clearFaults()
    const event = JSON.parse(stdout)
    expect([code, event.event]).toEqual([1, 'failed'])
    expect(stderr).toBe(`✘ ${event.code}: ${event.message}`)
    messages[what] = stderr.replace(/(127\.0\.0\.1):\d+/g, '$1:<port>')
  }
  await expectPage('commands-that-call', messages)
})

test('Ctrl-C ends a call, says what it may have done, and the exit code is 130', async () => {
  const { emulator } = fixture
  emulator.injectFault('create', { delayMs: 60_000 })
  const before = emulator.requestCounts.create
  const running = await start(['subscribe', ...flags], fixture.environment())
  await vi.waitUntil(() => emulator.requestCounts.create > before, { timeout: 60_000 })
  running.child.kill('SIGINT')
  const { code, stdout, stderr } = await running.finished
  expect([code, stdout]).toEqual([130, ''])
  expect(stderr).toMatch(/^Interrupted by Ctrl-C\. The subscription may exist\. .*--recreate-if-exists/)
})
