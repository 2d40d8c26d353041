import { tracingChannel } from 'node:diagnostics_channel'
import { ConnectionError } from 'notification-subscriber'
import { expect, onTestFinished, test } from 'vitest'
import { channelFor, traced } from '../../src/shared/tracing.js'
import { everythingShownBy } from '../support/secrets.js'

const channel = channelFor('deliver')
const subscribable = tracingChannel('notification-subscriber:deliver')

test('nothing is computed without a subscriber', async () => {
  const contextOf = () => expect.unreachable('the context was computed')
  await expect(traced(channel, contextOf, async (context) => context)).resolves.toBeUndefined()
})

test('subscribers see start, end and error, and never the result', async () => {
  const seen: string[] = []
  const contexts: object[] = []
  const note = (event: string) => (message: object) => {
    seen.push(event)
    contexts.push({ ...message })
  }
  const events = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const
  const handlers = Object.fromEntries(events.map((event) => [event, note(event)])) as never
  subscribable.subscribe(handlers)
  onTestFinished(() => void subscribable.unsubscribe(handlers))
  const works = async () => 'a secret'
  await traced(channel, () => ({ attempt: 1 }), works)
  expect(seen).toEqual(['start', 'end', 'asyncStart', 'asyncEnd'])
  expect(contexts).toEqual(Array.from({ length: 4 }, () => ({ attempt: 1 })))
  const failure = new ConnectionError('failed', { requestSent: false })
  const throws = () => {
    throw failure
  }
  for (const run of [() => Promise.reject(failure), throws]) {
    seen.length = 0
    await expect(traced(channel, () => ({ attempt: 2 }), run)).rejects.toBe(failure)
    expect(seen).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd'])
    expect(contexts.at(-1)).toEqual({ attempt: 2, error: failure })
  }
})

test("what a user's function throws is published by its name alone: its message may hold a secret", async () => {
  const errors: unknown[] = []
  const handlers = { error: (context: { error?: unknown }) => errors.push(context.error) } as never
  subscribable.subscribe(handlers)
  onTestFinished(() => void subscribable.unsubscribe(handlers))
  for (const thrown of [new TypeError('s3cret'), 's3cret']) {
    const fails = () => Promise.reject(thrown)
    await expect(traced(channel, () => ({}), fails)).rejects.toBe(thrown)
  }
  expect(errors).toMatchObject([{ name: 'TypeError' }, { name: 'string' }])
  expect(everythingShownBy(errors)).not.toContain('s3cret')
})
