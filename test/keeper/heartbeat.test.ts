import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Heartbeat } from '../../src/keeper/heartbeat.js'
import { heartbeatMs } from '../../src/keeper/timing.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('somebody who begins to hold the heart while a slow beat is in flight starts no second chain of beats', async () => {
  let beats = 0
  const heartbeat = new Heartbeat(
    async () => {
      beats++
      await new Promise((resolve) => setTimeout(resolve, 10_000))
    },
    () => {},
  )
  heartbeat.hold()
  await vi.advanceTimersByTimeAsync(heartbeatMs + 1_000)
  const released = heartbeat.release()
  heartbeat.hold()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await released).toBe(false)
  beats = 0
  await vi.advanceTimersByTimeAsync(10 * (heartbeatMs + 10_000))
  expect(beats).toBeLessThanOrEqual(10)
  await Promise.all([heartbeat.release(), vi.advanceTimersByTimeAsync(20_000)])
  expect(vi.getTimerCount()).toBe(0)
})
