import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { NotificationClient, type NotificationClientOptions } from 'notification-subscriber'
import { type Fault, type RecordedRequest, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { checkCommand } from '../../../src/cli/check/check.js'
import { Lifecycle } from '../../../src/cli/check/lifecycle.js'
import type { CheckStep } from '../../../src/cli/check/step.js'
import { clientVariables } from '../../../src/emulator/words.js'
import { created } from '../../emulator/support.js'
import { expectPage } from '../../support/message-page.js'
import { call, start } from '../support.js'
import { bodyMark, checkFixture, type PrintedStep, shown } from './support.js'

const fixture = checkFixture()
const callbackUrl = 'https://app.example.com/notifications'
const flags = ['--lifecycle', '--username', 'alice', '--callback-url', callbackUrl]

/** The calls of a lifecycle on a service that behaves as documented, each with its step. */
const calls = [
  ['create', 'Create'],
  ['create', 'Duplicate'],
  ['create', 'Overlap with recreateIfExists'],
  ['create', 'Recreate'],
  ['update', 'Update'],
  ['update', 'Update'],
  ['unsubscribe', 'Unsubscribe'],
  ['create', 'Unsubscribe'],
  ['unsubscribe', 'Unsubscribe the replaced one'],
] as const
const names = [...new Set(calls.map(([, name]) => name)), 'Clean-up']

afterEach(() => fixture.emulator.clearFaults())

/** A lifecycle as the command plays it, without the steps before it. */
async function lifecycle(options: Partial<NotificationClientOptions> = {}): Promise<readonly PrintedStep[]> {
  await using client = new NotificationClient({ ...fixture.emulator.clientOptions, retry: false, ...options })
  const played = new Lifecycle({
    ...{ client, callbackUrl },
    username: 'alice',
    parameters: { token: 'hush' },
    isInterrupted: () => false,
  })
  const steps: CheckStep[] = []
  for await (const step of played.run()) steps.push(step)
  steps.push({ name: 'Clean-up', ...(await played.cleanUp()) })
  expect(JSON.stringify(steps)).not.toMatch(new RegExp(`hush|${bodyMark}`))
  return steps.map(({ details, ...step }) => ({ ...step, ...details }) as PrintedStep)
}

/** Lets one call of the lifecycle meet a fault. */
function faultAt(index: number, fault: Fault): void {
  const { emulator } = fixture
  const inject = () => emulator.injectFault(calls[index]?.[0] ?? 'token', fault)
  if (index === 0) {
    inject()
    return
  }
  let answered = 0
  const stop = emulator.on('request', ({ operation }: RecordedRequest) => {
    if (operation !== 'token') answered += 1
    if (answered === index) {
      stop()
      inject()
    }
  })
  onTestFinished(stop)
}

describe('on a service that behaves as documented', () => {
  test('the command plays every step, and touches no subscription of others', async () => {
    const other = await created(fixture.emulator, { url: callbackUrl, types: 'behavioral,call-score' })
    const { outcomes } = await fixture.check(flags)
    expect(outcomes.slice(-names.length)).toEqual(names.map((name) => [name, 'passed']))
    expect(fixture.emulator.subscriptions.map(({ subscriptionId }) => subscriptionId)).toEqual([other])
    fixture.emulator.endSubscription(other)
  })

  test('the report has the findings, and neither secrets nor names and addresses', async () => {
    const report = join(fixture.folder, 'report.json')
    const secret = ['--secret', `token=@${join(fixture.folder, 'token')}`]
    await call(checkCommand, [...flags, ...secret, '--report', report], fixture.environment())
    const text = await readFile(report, 'utf8')
    for (const word of [
      'alice',
      'app.example.com',
      'hush',
      fixture.emulator.clientSecret,
      'emulator-client',
    ]) {
      expect(text).not.toContain(word)
    }
    const { service, steps, subscriptionsLeft, isInterrupted } = JSON.parse(text)
    expect([service, subscriptionsLeft, isInterrupted]).toEqual([fixture.emulator.baseUrl, [], false])
    expect(steps.map(({ name }: PrintedStep) => name)).toEqual(names)
    expect(steps[5]).toEqual({
      name: 'Unsubscribe',
      outcome: 'passed',
      documented: '204 or another 2xx',
      source: 'public developer pages',
      result: 'holds',
      status: 204,
    })
    expect((await stat(report)).mode & 0o777).toBe(0o600)
  })

  test('a report that cannot be written is noticed before anything is sent', async () => {
    const created = vi.fn()
    onTestFinished(fixture.emulator.on('created', created))
    const result = await call(checkCommand, [...flags, '--report', fixture.folder], fixture.environment())
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining(fixture.folder) })
    expect(created).not.toHaveBeenCalled()
  })
})

describe('on a service that behaves otherwise', () => {
  test.each<[number, Fault, number]>([
    [0, { status: 400, body: bodyMark }, 400],
    [1, { status: 201, body: '{"subscription_id": 900}' }, 201],
    [2, { status: 400 }, 400],
    [3, { status: 409 }, 409],
    [4, { status: 404 }, 404],
    [4, { status: 501 }, 501],
    [5, { status: 200 }, 200],
    [6, { status: 405 }, 405],
    [8, { status: 204 }, 204],
  ])('the step of call %i differs, and nothing is left behind', async (index, fault, status) => {
    faultAt(index, fault)
    const steps = await lifecycle()
    const step = steps.find(({ result }) => result === 'differs')
    expect(step).toMatchObject({
      name: calls[index]?.[1],
      outcome: 'failed',
      status,
      next: expect.any(String),
    })
    expect(steps.at(-1)).toMatchObject({ name: 'Clean-up', outcome: 'passed' })
    expect(fixture.emulator.subscriptions).toEqual([])
  })
})

describe('with wrong routes', () => {
  const elsewhere = {
    unsubscribe: { path: '/end/{subscriptionId}' },
    update: { path: '/change/{subscriptionId}' },
  }
  const catchAll: NotificationClientOptions['fetch'] = async (url, init) =>
    ['PUT', 'DELETE'].includes(init.method) ? new Response('{}') : fetchOf(url, init)
  const fetchOf = (url: string, init: RequestInit) => fixture.emulator.fetch(new Request(url, init))

  test.each<[string, Partial<NotificationClientOptions>]>([
    ['that are answered 404', { routes: elsewhere }],
    ['that are answered 405', { routes: { unsubscribe: { method: 'POST' }, update: { method: 'POST' } } }],
    ['that are answered 200, whatever is sent', { dispatcher: undefined, fetch: catchAll }],
  ])(
    '%s: both settings are named, nothing false is ticked, and what is left is named',
    async (_name, options) => {
      const steps = await lifecycle(options)
      const [left] = fixture.emulator.subscriptions
      const id = left?.subscriptionId ?? 0
      fixture.emulator.endSubscription(id)
      expect(steps.slice(4).map(({ name, outcome }) => [name, outcome])).toEqual([
        ['Update', 'failed'],
        ['Unsubscribe', 'failed'],
        ['Unsubscribe the replaced one', 'skipped'],
        ['Clean-up', 'failed'],
      ])
      expect(steps[4]?.next).toMatch(/NOTIFICATION_UPDATE_ROUTE.*--update-route.*`routes\.update`/)
      for (const step of [steps[5], steps[7]]) {
        expect(step?.next).toMatch(
          /NOTIFICATION_UNSUBSCRIBE_ROUTE.*--unsubscribe-route.*`routes\.unsubscribe`/,
        )
      }
      expect(steps[7]?.message).toContain(`subscription ${id}`)
      expect(fixture.emulator.subscriptions).toEqual([])
    },
  )

  test('the flags of the command set the right ones', async () => {
    const routes = {
      unsubscribe: { method: 'POST', path: '/end', idField: 'subscription_id' },
      update: { path: '/change?id={subscriptionId}', format: 'json' },
    } as const
    await using emulator = await startEmulator({ routes })
    const caFile = join(fixture.folder, 'routes-ca.pem')
    await writeFile(caFile, emulator.ca)
    const env = { ...clientVariables(emulator, caFile), NOTIFICATION_UNSUBSCRIBE_ROUTE: 'GET' }
    const right = [
      ...['--unsubscribe-route', 'POST /end subscription_id'],
      ...['--update-route', 'PUT /change?id={subscriptionId} json'],
    ]
    const { outcomes } = await fixture.check([...flags, ...right], env)
    expect(outcomes.slice(-names.length)).toEqual(names.map((name) => [name, 'passed']))
    expect(emulator.subscriptions).toEqual([])
  })
})

describe('when an answer says nothing', () => {
  const faults: readonly Fault[] = [
    { status: 500, body: bodyMark },
    { status: 503 },
    { status: 401 },
    { reset: 'before-processing' },
    { reset: 'after-processing' },
    { malformedBody: bodyMark },
  ]
  const cases = calls.flatMap(([operation, name], index) =>
    faults
      // Only the first create, the recreate and the create after unsubscribe have an ID in the body.
      .filter((fault) => [0, 3, 7].includes(index) || !('malformedBody' in fault))
      .map((fault) => [index, operation, fault, name] as const),
  )

  test.each(cases)(
    'call %i, a %s that meets %j: later steps are skipped, and nothing is left behind',
    async (index, _, fault, name) => {
      faultAt(index, fault)
      const steps = await lifecycle()
      expect(steps.map(({ name }) => name)).toEqual(names)
      // A 401 is repeated once, with a new token.
      if (!('status' in fault && fault.status === 401)) {
        const place = names.indexOf(name)
        expect(steps[place]).toMatchObject({ outcome: 'failed', result: 'unknown' })
        for (const step of steps.slice(place + 1, -1)) expect(step.outcome).toBe('skipped')
      }
      expect(steps.at(-1)).toMatchObject({ name: 'Clean-up', outcome: 'passed' })
      expect(fixture.emulator.subscriptions).toEqual([])
    },
  )

  test('a service that is busy is asked again at the end', async () => {
    fixture.emulator.injectFault('unsubscribe', { status: 503 }, { times: 6 })
    expect((await lifecycle()).at(-1)).toMatchObject({ name: 'Clean-up', outcome: 'passed' })
    expect(fixture.emulator.subscriptions).toEqual([])
  })

  test('what cannot be ended is named', async () => {
    const { emulator } = fixture
    const messages: Record<string, string> = {}
    for (const [what, operation, status] of [
      ['a lost answer', 'create', 503],
      ['an ID that cannot be unsubscribed', 'unsubscribe', 404],
    ] as const) {
      if (operation === 'create') faultAt(0, { reset: 'after-processing' })
      const stop = emulator.on('created', () => {
        stop()
        emulator.injectFault(operation, { status }, { times: 100 })
      })
      const step = (await lifecycle()).at(-1)
      emulator.clearFaults()
      const [{ subscriptionId = 0, callbackUrl = '' } = {}] = emulator.subscriptions
      emulator.endSubscription(subscriptionId)
      messages[what] = shown(step)
        .replace(new URL(callbackUrl).search.slice(1), '<mark>')
        .replace(/subscription \d+/g, 'subscription <ID>')
    }
    await expectPage('check-clean-up', messages)
  })
})

describe('interrupted', () => {
  const signals = [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const

  test.each([0, 3, 5].map((index) => [names[index] ?? '', index] as const))(
    'after "%s": nothing is left behind',
    async (name, index) => {
      const { emulator } = fixture
      // Long enough for the signal to arrive while the next call waits for its answer.
      for (const operation of ['create', 'update', 'unsubscribe'] as const) {
        emulator.injectFault(operation, { delayMs: 300 }, { times: 100 })
      }
      const running = await start(['check', '--json', ...flags], { env: fixture.environment() })
      await running.line(new RegExp(`"name":"${name}"`))
      // npx passes on the signal of the terminal: it arrives twice.
      const [signal, exitCode] = signals[index % signals.length] ?? signals[0]
      running.child.kill(signal)
      setTimeout(() => running.child.kill(signal), 50)
      const { code, stdout, stderr } = await running.finished
      expect([code, stderr]).toEqual([exitCode, ''])
      expect(JSON.parse(stdout.split('\n').at(-1) ?? '')).toMatchObject({
        event: 'result',
        interrupted: true,
      })
      const played = stdout.split('\n').filter((line) => names.some((each) => line.includes(`"${each}"`)))
      expect(played.at(-1)).toContain('"name":"Clean-up","outcome":"passed"')
      // The steps until the signal, the call in flight, and the clean-up.
      expect(played.length).toBeLessThanOrEqual(index + 3)
      expect(emulator.subscriptions).toEqual([])
    },
  )

  test('a second signal later ends the process at once', async () => {
    const { emulator } = fixture
    const before = emulator.requestCounts.create
    // The first two creates are refused: they show whether the service accepts the credentials.
    const stop = emulator.on('request', () => {
      if (emulator.requestCounts.create < before + 2) return
      stop()
      emulator.injectFault('create', { delayMs: 5_000 })
    })
    const running = await start(['check', ...flags], { env: fixture.environment() })
    // Only from then on the command ends in order.
    await vi.waitUntil(() => emulator.requestCounts.create > before + 2, { timeout: 60_000 })
    running.child.kill('SIGINT')
    await running.line(/ending the subscriptions/)
    await new Promise((resolve) => setTimeout(resolve, 700))
    running.child.kill('SIGINT')
    expect((await running.finished).code).toBe(130)
    emulator.clearFaults()
    for (const { subscriptionId } of emulator.subscriptions) emulator.endSubscription(subscriptionId)
  })
})
