/** Whatever goes wrong, the client's word never contradicts the state of the server. */
import fc from 'fast-check'
import type { CreateSubscriptionInput } from 'notification-subscriber'
import type { Fault } from 'notification-subscriber/emulator'
import { describe, test } from 'vitest'
import { seed, sequences } from '../support/random-runs.js'
import { hastyMs, Oracle } from './oracle.js'

/** Few enough that identical and overlapping subscriptions are common. */
const wanted: readonly CreateSubscriptionInput[] = (
  [
    [['behavioral'], ['alice']],
    [['behavioral'], ['alice', 'bob']],
    [['behavioral', 'call-score'], ['bob']],
    [['call-score'], ['carol']],
  ] as const
).map(([notificationTypes, usernames]) => ({
  notificationTypes,
  usernames,
  callbackUrl: 'https://app.example.com/notifications',
  parameters: { token: 'first' },
}))

interface Command {
  readonly call: 'create' | 'recreate' | 'unsubscribe' | 'update'
  /** Which subscription, of those wanted or those created. */
  readonly which: number
  /** What happens to the first answers of the call. */
  readonly faults: readonly Fault[]
  /** What happens to a new token, which the call then needs. */
  readonly tokenFault: Fault | undefined
}

const status = fc.constantFrom(400, 401, 403, 429, 500, 502, 503, 504)
const promptFault: fc.Arbitrary<Fault> = fc.oneof(
  status.map((status) => ({ status, headers: { 'retry-after': '0' } })),
  fc.constantFrom({ reset: 'before-processing' } as const, { reset: 'after-processing' } as const),
  fc.constantFrom({ malformedBody: true } as const, { malformedBody: '<html>' }, { malformedBody: '{}' }),
)
const anyFault = fc.oneof(
  { arbitrary: promptFault, weight: 16 },
  { arbitrary: fc.constantFrom({ delayMs: 1 }, { delayMs: 60_000 }), weight: 1 },
)

const sequenceOf = (fault: fc.Arbitrary<Fault>): fc.Arbitrary<Command[]> =>
  fc.array(
    fc.record({
      call: fc.constantFrom('create', 'recreate', 'unsubscribe', 'update'),
      which: fc.nat(3),
      faults: fc.array(fault, { maxLength: 4 }),
      tokenFault: fc.option(fault, { nil: undefined, freq: 6 }),
    }),
    { minLength: 2, maxLength: 8 },
  )

async function play(oracle: Oracle, commands: readonly Command[]): Promise<void> {
  for (const [index, command] of commands.entries()) await obey(oracle, command, index)
  await oracle.reset()
}

async function obey(oracle: Oracle, { call, which, faults, tokenFault }: Command, index: number) {
  const { emulator } = oracle
  const operation = call === 'recreate' ? 'create' : call
  for (const fault of faults) {
    const canHappen = operation !== 'unsubscribe' || !('malformedBody' in fault)
    if (canHappen) emulator.injectFault(operation, fault)
  }
  if (tokenFault !== undefined) {
    emulator.injectFault('token', tokenFault)
    emulator.revokeTokens()
  }
  const isSlow = [...faults, tokenFault].some((fault) => fault !== undefined && 'delayMs' in fault)
  const options = { timeoutMs: isSlow ? hastyMs : 30_000 }
  switch (call) {
    case 'unsubscribe':
      return oracle.unsubscribe(oracle.idOf(which), options)
    case 'update':
      return oracle.update(oracle.idOf(which), `value-${index}`, options)
    default: {
      const input = wanted[which] as CreateSubscriptionInput
      return oracle.create({ ...input, recreateIfExists: call === 'recreate' }, options)
    }
  }
}

/** Most of the time is waiting, which several services can do at once. One sequence in ten goes over TLS. */
const lanes = [
  ...Array.from(
    { length: 6 },
    () => ({ transport: 'in process', fault: anyFault, numRuns: Math.ceil((sequences * 0.9) / 6) }) as const,
  ),
  ...Array.from(
    { length: 2 },
    () => ({ transport: 'over TLS', fault: promptFault, numRuns: Math.ceil((sequences * 0.1) / 2) }) as const,
  ),
].map((lane, index) => ({ ...lane, index }))

describe.concurrent('random faults before every answer', () => {
  test.for(lanes)('$numRuns sequences $transport', { timeout: 3_600_000 }, async (lane) => {
    await using oracle = await Oracle.of(lane.transport)
    const property = fc.asyncProperty(sequenceOf(lane.fault), (commands) => play(oracle, commands))
    // Each lane plays other sequences.
    await fc.assert(property, { numRuns: lane.numRuns, seed: seed + lane.index })
  })
})
