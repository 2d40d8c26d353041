import type { Fault } from 'notification-subscriber/emulator'
import { afterEach, describe, expect, test } from 'vitest'
import { expectPage } from '../support/message-page.js'
import { bodyMark, checkFixture, shown } from './check-support.js'
import { start } from './support.js'

const fixture = checkFixture()
const callbackUrl = 'https://app.example.com/notifications'
const flags = ['--lifecycle', '--username', 'alice', '--callback-url', callbackUrl]
const names = [
  'Create',
  'Duplicate',
  'Overlap with recreateIfExists',
  'Recreate',
  'Update',
  'Unsubscribe',
  'Clean-up',
]

afterEach(() => fixture.emulator.clearFaults())

/** The steps of the lifecycle, of which nothing may be left. */
async function lifecycle(env?: Record<string, string>) {
  const { steps } = await fixture.check(flags, env)
  return steps.slice(3)
}

/** The faults of the calls before the one that is meant, and its own; the first two creates are those of Authorization. */
const otherwise: readonly [
  what: string,
  operation: 'create' | 'update' | 'unsubscribe',
  index: number,
  fault: Fault,
][] = [
  ['a create is refused', 'create', 2, { status: 400 }],
  ['a create is lost', 'create', 2, { reset: 'after-processing' }],
  ['a create is answered 503', 'create', 2, { status: 503 }],
  ['a create has no ID', 'create', 2, { malformedBody: bodyMark }],
  ['a duplicate is accepted', 'create', 3, { status: 201, body: '{"subscription_id": 900}' }],
  ['an overlap is accepted', 'create', 4, { status: 201, body: '{"subscription_id": 900}' }],
  ['a recreate is refused', 'create', 5, { status: 409 }],
  ['update has another route', 'update', 0, { status: 404 }],
  ['unsubscribe has another route', 'unsubscribe', 0, { status: 405 }],
  ['unsubscribe ends nothing', 'unsubscribe', 0, { status: 200 }],
]

test('messages about a service that behaves otherwise: the reviewed page; nothing is left behind', async () => {
  const { emulator } = fixture
  const messages: Record<string, string> = {}
  for (const [what, operation, index, fault] of otherwise) {
    let answered = 0
    const inject = () => emulator.injectFault(operation, fault)
    if (index === 0) inject()
    const stop = emulator.on('request', (request) => {
      if (request.operation === operation && ++answered === index) inject()
    })
    const failed = (await lifecycle()).filter(({ outcome }) => outcome === 'failed')
    stop()
    emulator.clearFaults()
    expect(emulator.subscriptions).toEqual([])
    messages[what] = failed
      .map((step) => `${step.name}: ${shown(step)}`)
      .join('\n  ')
      .replace(/subscription \d+/g, 'subscription <ID>')
  }
  emulator.injectFault('unsubscribe', { status: 404 }, { times: 100 })
  const left = (await lifecycle()).at(-1)
  const [{ subscriptionId = 0 } = {}] = emulator.subscriptions
  emulator.endSubscription(subscriptionId)
  expect(left?.message).toContain(`subscription ${subscriptionId}`)
  messages['what cannot be ended'] = shown(left)
    .replace(/(subscription|unsubscribe) \d+/g, '$1 <ID>')
    .replace(/check=\w+/, '<mark>')
  // A flag of another command.
  expect(JSON.stringify(messages)).not.toContain('--recreate-if-exists')
  await expectPage('check-lifecycle', messages)
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
      const running = await start(['check', '--json', ...flags], fixture.environment())
      await running.line(new RegExp(`"name":"${name}"`))
      // npx passes on the signal of the terminal: it arrives twice.
      const [signal, exitCode] = signals[index % signals.length] ?? signals[0]
      running.child.kill(signal)
      setTimeout(() => running.child.kill(signal), 50)
      const { code, stdout, stderr } = await running.finished
      expect([code, stderr]).toEqual([exitCode, ''])
      const played = stdout.split('\n').filter((line) => names.some((each) => line.includes(`"${each}"`)))
      expect(played.at(-1)).toContain('"name":"Clean-up","outcome":"passed"')
      // The steps until the signal, the call in flight, and the clean-up.
      expect(played.length).toBeLessThanOrEqual(index + 3)
      expect(emulator.subscriptions).toEqual([])
    },
  )
})
