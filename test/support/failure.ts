/** How calls fail, and how networks do. */
import { expect } from 'vitest'

/** What a promise rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  const [result] = await Promise.allSettled([promise])
  return result.status === 'rejected' ? result.reason : expect.fail('should have failed')
}

export const networkError = (fields: object, message = 'what the network says') =>
  Object.assign(new Error(message), fields)

/** The error that `fetch` throws because of another one. */
export const failedFetch = (cause: unknown) => Object.assign(new TypeError('fetch failed'), { cause })

/** As `fetch` does on a port without a listener. */
export function refused(): never {
  throw failedFetch(networkError({ code: 'ECONNREFUSED' }, 'connect ECONNREFUSED'))
}
