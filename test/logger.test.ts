import { expect, test, vi } from 'vitest'
import { callLogged, logOf } from '../src/logger.js'

test.each([
  [
    'throws',
    () => {
      throw 'why'
    },
  ],
  ['rejects', () => Promise.reject('why')],
])('what a function of the user %s is one line', async (_name, call) => {
  const log = vi.fn()
  await callLogged(log, { event: 'listener.failed' }, 'A listener failed', call)
  expect(log.mock.calls).toEqual([['error', { event: 'listener.failed', err: 'why' }, 'A listener failed']])
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

test.each([
  [
    'throws',
    () => {
      throw new Error('why')
    },
  ],
  ['rejects', () => Promise.reject(new Error('why'))],
])('a logger that %s breaks nothing', async (_name, write) => {
  const log = logOf({ debug: write, info: write, warn: write, error: write })
  await log('warn', { event: 'request.failed' }, 'Request got no answer')
})
