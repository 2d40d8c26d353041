/** What happens at the service, and on the way to it. */
import fc from 'fast-check'
import { latestEffectMs, type NetworkOutcome, unknownStatuses } from '../network-outcomes.js'
import { event, forMs, user } from './event.js'

const effectMs = fc.oneof(fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 3_000, max: latestEffectMs }))
const perhapsEffectMs = fc.option(effectMs, { nil: undefined })

/** What can become of every request for a while. */
const outage: fc.Arbitrary<NetworkOutcome> = fc.oneof(
  fc.constantFrom(500, 503, 401, 403, 429).map((status) => ({ kind: 'status', status }) as const),
  fc.constantFrom(503, 429).map((status) => ({ kind: 'status', status, retryAfterMs: 3_600_000 }) as const),
  fc.constantFrom(
    { kind: 'unreachable' } as const,
    { kind: 'no-token' } as const,
    { kind: 'silent' } as const,
  ),
)

/** What can become of a single request. */
const outcome: fc.Arbitrary<NetworkOutcome> = fc.oneof(
  outage,
  fc.record({
    kind: fc.constant('status' as const),
    status: fc.constantFrom(...unknownStatuses),
    effectAfterMs: perhapsEffectMs,
  }),
  fc.record({ kind: fc.constant('reset' as const), effectAfterMs: perhapsEffectMs }),
  fc.record({ kind: fc.constant('silent' as const), effectAfterMs: effectMs }),
  fc
    .tuple(effectMs, fc.integer({ min: 0, max: 20_000 }))
    .map(
      ([effectAfterMs, laterMs]) =>
        ({ kind: 'slow', effectAfterMs, answerAfterMs: effectAfterMs + laterMs }) as const,
    ),
  fc.constant({ kind: 'garbled' } as const),
)

export const serviceEvents = {
  outage: event(fc.record({ outcome: outage, forMs }), (world, { outcome, forMs }) => {
    const everyOutcome = () => outcome
    world.everyOutcome = everyOutcome
    world.time.schedule(forMs, () => {
      if (world.everyOutcome === everyOutcome) world.everyOutcome = undefined
    })
  }),

  loseAnswers: event(
    fc.record({ outcomes: fc.array(outcome, { minLength: 1, maxLength: 4 }) }),
    (world, { outcomes }) => {
      world.nextOutcomes.push(...outcomes)
    },
  ),

  refuseUser: event(fc.record({ user, forMs }), (world, { user, forMs }) => {
    world.refused.add(user)
    world.time.schedule(forMs, () => world.refused.delete(user))
  }),

  // Together with an outsider, so that it is never one that a keeper may replace.
  subscribeSomebodyElse: event(fc.record({ user, with: user }), (world, { user, with: other }) =>
    world.subscribeSomebodyElse([user, other, 'outsider']),
  ),

  /** Somebody else makes a subscription that looks like the keeper's. */
  subscribeTwin: event(fc.record({ user }), (world, { user }) => world.subscribeSomebodyElse([user])),
}
