/** One time limit over a whole call, and waits that end with it. */
import { TimeoutError } from '../errors.js'

/** What a caller may set on each call. */
export interface CallOptions {
  /** Aborts the call: it rejects with the signal's own reason. */
  readonly signal?: AbortSignal | undefined
  /** Limit for the whole call, token and retries included, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined
}

/** What is left of a call's time. */
export interface Deadline {
  readonly signal: AbortSignal
  /** When the signal aborts at the latest, on the monotonic clock. */
  readonly endsAt: number
}

/**
 * Runs `work` with a signal that aborts with a `TimeoutError` after `timeoutMs`, or with the caller's own
 * reason. `work` must give that signal to everything it waits for.
 */
export async function withDeadline<T>(
  timeoutMs: number,
  callerSignal: AbortSignal | undefined,
  work: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  callerSignal?.throwIfAborted()
  const controller = new AbortController()
  const endsAt = performance.now() + timeoutMs
  const timer = setTimeout(() => {
    const message =
      `The call took longer than ${timeoutMs} ms, token and retries included. ` +
      'Repeat it, or allow more time with `timeoutMs`.'
    controller.abort(new TimeoutError(message, { timeoutMs }))
  }, timeoutMs)
  const onAbort = () => controller.abort(callerSignal?.reason)
  callerSignal?.addEventListener('abort', onAbort, { once: true })
  try {
    return await work({ signal: controller.signal, endsAt })
  } finally {
    clearTimeout(timer)
    callerSignal?.removeEventListener('abort', onAbort)
  }
}

/** Waits for a promise that others may share: an abort ends this wait alone and leaves the promise running. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/** Resolves after `ms` milliseconds, or rejects with the signal's reason as soon as it aborts. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const slept = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  return untilAborted(slept, signal).finally(() => clearTimeout(timer))
}
