import { vi } from 'vitest'

/** Waits until an assertion holds, for ten seconds at most: vitest's own second is little on a busy machine. */
export function eventually<T>(assertion: () => T): Promise<T> {
  return vi.waitFor(assertion, { timeout: 10_000 })
}
