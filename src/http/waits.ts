/** Waits that end with a deadline. */
import type { Deadline } from './deadline.js'

/** Waits for a promise that others may share: an abort ends this wait alone and leaves the promise running. */
export function untilAborted<T>(promise: Promise<T>, deadline: Deadline): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(deadline.reason)
    deadline.onAbort(onAbort)
    promise.then(
      (value) => {
        deadline.removeListener(onAbort)
        resolve(value)
      },
      (reason: unknown) => {
        deadline.removeListener(onAbort)
        reject(reason)
      },
    )
  })
}

/** Runs `work` with a real AbortSignal. Waits for it until the deadline at most, even if `work` ignores the signal. */
export async function withSignal<T>(
  deadline: Deadline,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const onAbort = () => controller.abort(deadline.reason)
  deadline.onAbort(onAbort)
  try {
    return await untilAborted(work(controller.signal), deadline)
  } finally {
    deadline.removeListener(onAbort)
  }
}

/** Resolves after `ms` milliseconds, or rejects with the deadline's reason as soon as the deadline is aborted. */
export async function sleep(ms: number, deadline: Deadline): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const slept = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  try {
    await untilAborted(slept, deadline)
  } finally {
    clearTimeout(timer)
  }
}
