import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { NotificationClient } from 'notification-subscriber'
import type { Fault, RecordedRequest } from 'notification-subscriber/emulator'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { checkCommand } from '../../../src/cli/check/check.js'
import { Lifecycle, StatusLog } from '../../../src/cli/check/lifecycle.js'
import type { Step } from '../../../src/cli/check/step.js'
import { created } from '../../emulator/support.js'
import { call, start } from '../support.js'
import { bodyMark, checkFixture, type PrintedStep } from './support.js'

const fixture = checkFixture()
const callbackUrl = 'https://app.example.com/notifications'
const flags = ['--lifecycle', '--username', 'alice', '--callback-url', callbackUrl]

/** The calls of a lifecycle on a service that behaves as documented. */
const calls = [
  'create',
  'create',
  'create',
  'create',
  'unsubscribe',
  'update',
  'unsubscribe',
  'unsubscribe',
] as const
const names = [
  'Create',
  'Duplicate',
  'Overlap with recreateIfExists',
  'Recreate',
  'Unsubscribe the replaced one',
  'Update',
  'Unsubscribe',
  'Unsubscribe again',
  'Clean-up',
]

afterEach(() => fixture.emulator.clearFaults())

/** A lifecycle as the command plays it, without the steps before it. */
async function lifecycle(): Promise<readonly PrintedStep[]> {
  const statusLog = new StatusLog()
  await using client = new NotificationClient({
    ...fixture.emulator.clientOptions,
    retry: false,
    logger: statusLog,
  })
  const played = new Lifecycle({
    ...{ client, statusLog, callbackUrl },
    username: 'alice',
    parameters: { token: 'hush' },
    isInterrupted: () => false,
  })
  const steps: Step[] = []
  for await (const step of played.run()) steps.push(step)
  steps.push(await played.cleanUp())
  expect(JSON.stringify(steps)).not.toMatch(new RegExp(`hush|${bodyMark}`))
  return steps.map(({ details, ...step }) => ({ ...step, ...details }) as PrintedStep)
}

/** Lets one call of the lifecycle meet a fault. */
function faultAt(index: number, fault: Fault): void {
  const { emulator } = fixture
  const inject = () => emulator.injectFault(calls[index] ?? 'token', fault)
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

  test('every step holds', async () => {
    const steps = await lifecycle()
    expect(steps.map(({ name, outcome, result, status }) => [name, outcome, result, status])).toEqual([
      ['Create', 'passed', 'holds', 201],
      ['Duplicate', 'passed', 'holds', 409],
      ['Overlap with recreateIfExists', 'passed', 'holds', 409],
      ['Recreate', 'passed', 'holds', 201],
      ['Unsubscribe the replaced one', 'passed', 'holds', 404],
      ['Update', 'passed', 'holds', expect.any(Number)],
      ['Unsubscribe', 'passed', 'holds', 204],
      ['Unsubscribe again', 'passed', 'holds', 404],
      ['Clean-up', 'passed', undefined, undefined],
    ])
    expect(fixture.emulator.subscriptions).toEqual([])
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
    expect(steps[6]).toEqual({
      name: 'Unsubscribe',
      outcome: 'passed',
      documented: '204',
      source: 'public developer pages',
      result: 'holds',
      status: 204,
    })
    expect((await stat(report)).mode & 0o777).toBe(0o600)
  })

  test('a report that cannot be written is noticed before anything is sent', async () => {
    const before = fixture.emulator.requestCounts.create
    const result = await call(checkCommand, [...flags, '--report', '/dev/null'], fixture.environment())
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining('/dev/null') })
    expect(fixture.emulator.requestCounts.create).toBe(before)
  })
})

describe('on a service that behaves otherwise', () => {
  test.each<[number, Fault, number]>([
    [0, { status: 400, body: bodyMark }, 400],
    [1, { status: 201, body: '{"subscription_id": 900}' }, 201],
    [2, { status: 400 }, 400],
    [3, { status: 409 }, 409],
    [4, { status: 204 }, 204],
    [5, { status: 404 }, 404],
    [6, { status: 405 }, 405],
    [7, { status: 204 }, 204],
  ])('the step of call %i differs, and nothing is left behind', async (index, fault, status) => {
    faultAt(index, fault)
    const steps = await lifecycle()
    const step = steps.find(({ result }) => result === 'differs')
    expect(step).toMatchObject({ name: names[index], outcome: 'failed', status, next: expect.any(String) })
    expect(steps.at(-1)).toMatchObject({ name: 'Clean-up', outcome: 'passed' })
    expect(fixture.emulator.subscriptions).toEqual([])
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
  const cases = calls.flatMap((operation, index) =>
    faults
      // Only the first create and the recreate have an ID in the body.
      .filter((fault) => index === 0 || index === 3 || !('malformedBody' in fault))
      .map((fault) => [index, operation, fault] as const),
  )

  test.each(cases)(
    'call %i, a %s that meets %j: later steps are skipped, and nothing is left behind',
    async (index, _, fault) => {
      faultAt(index, fault)
      const steps = await lifecycle()
      expect(steps.map(({ name }) => name)).toEqual(names)
      // A 401 is repeated once, with a new token.
      if (!('status' in fault && fault.status === 401)) {
        expect(steps[index]).toMatchObject({
          outcome: 'failed',
          message: expect.stringContaining('not known'),
        })
        for (const step of steps.slice(index + 1, -1)) expect(step.outcome).toBe('skipped')
      }
      expect(steps.at(-1)).toMatchObject({ name: 'Clean-up', outcome: 'passed' })
      expect(fixture.emulator.subscriptions).toEqual([])
    },
  )

  test('what cannot be ended is named', async () => {
    faultAt(0, { reset: 'after-processing' })
    const stop = fixture.emulator.on('created', () => {
      stop()
      fixture.emulator.injectFault('create', { status: 503 }, { times: 100 })
    })
    const lost = (await lifecycle()).at(-1)
    expect(lost).toMatchObject({ name: 'Clean-up', outcome: 'failed', next: expect.any(String) })
    expect(lost?.message).toMatch(/a subscription whose ID is not known .*check=[\da-f]{8}/)
    const [left] = fixture.emulator.subscriptions
    expect(left?.callbackUrl).toMatch(/check=[\da-f]{8}$/)
    fixture.emulator.endSubscription(left?.subscriptionId ?? 0)
  })

  test('an ID that cannot be unsubscribed is named', async () => {
    const stop = fixture.emulator.on('created', () => {
      stop()
      fixture.emulator.injectFault('unsubscribe', { status: 404 }, { times: 100 })
    })
    const step = (await lifecycle()).at(-1)
    const [left] = fixture.emulator.subscriptions
    expect(step).toMatchObject({ name: 'Clean-up', outcome: 'failed' })
    expect(step?.message).toContain(`subscription ${left?.subscriptionId}`)
    fixture.emulator.endSubscription(left?.subscriptionId ?? 0)
  })
})

describe('interrupted', () => {
  const signals = [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const

  test.each(names.slice(0, -1).map((name, index) => [name, index] as const))(
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
    fixture.emulator.injectFault('create', { delayMs: 5_000 })
    const running = await start(['check', ...flags], { env: fixture.environment() })
    // Only from then on the command ends in order.
    await vi.waitUntil(() => fixture.emulator.requests.at(-1)?.operation === 'create', { timeout: 60_000 })
    running.child.kill('SIGINT')
    await running.line(/ending the subscriptions/)
    await new Promise((resolve) => setTimeout(resolve, 700))
    running.child.kill('SIGINT')
    expect((await running.finished).code).toBe(130)
    fixture.emulator.clearFaults()
    for (const { subscriptionId } of fixture.emulator.subscriptions)
      fixture.emulator.endSubscription(subscriptionId)
  })
})
