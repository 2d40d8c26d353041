/** One time limit over a whole call, and waits that end with it. */
import { EventEmitter } from 'node:events'
import { TimeoutError } from '../errors.js'

/** What a caller may set on each call. */
export interface CallOptions {
  /** Aborts the call: it rejects with the signal's own reason. */
  readonly signal?: AbortSignal | undefined
  /** Limit for the whole call, token and retries included, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined
}

/**
 * What is left of a call's time. Emits `abort` once, when it is over or when the caller aborts.
 *
 * An emitter, which undici takes for a signal: measured with undici on loopback, an AbortSignal for each call
 * costs a third of the throughput.
 */
export class Deadline extends EventEmitter {
  /** When it is over at the latest, on the monotonic clock. */
  readonly endsAt: number
  aborted = false
  /** Requests that have left, or may have, in this time. */
  requestsSent = 0
  /** Once aborted: a `TimeoutError`, or the reason of the caller's signal. */
  reason: unknown

  constructor(timeoutMs: number) {
    super()
    this.endsAt = performance.now() + timeoutMs
  }

  abort(reason: unknown): void {
    this.aborted = true
    this.reason = reason
    this.emit('abort')
  }

  /** As an AbortSignal has it: undici 8 takes nothing else for a signal. */
  addEventListener(event: 'abort', listener: () => void): void {
    this.once(event, listener)
  }

  /** See {@link addEventListener}. */
  removeEventListener(event: 'abort', listener: () => void): void {
    this.removeListener(event, listener)
  }
}

/** Runs `work` with a deadline, which `work` must give to everything it waits for. */
export async function withDeadline<T>(
  timeoutMs: number,
  callerSignal: AbortSignal | undefined,
  work: (deadline: Deadline) => Promise<T>,
  what = 'The call',
): Promise<T> {
  callerSignal?.throwIfAborted()
  const deadline = new Deadline(timeoutMs)
  const timer = setTimeout(() => deadline.abort(timeoutError(timeoutMs, what)), timeoutMs)
  const stopFollowing = callerSignal && follow(callerSignal, deadline)
  try {
    return await work(deadline)
  } finally {
    clearTimeout(timer)
    stopFollowing?.()
  }
}

/** The deadlines that end with a caller's signal. One listener serves all: many on a signal are warned of as a leak. */
const followers = new WeakMap<AbortSignal, Set<Deadline>>()

function follow(signal: AbortSignal, deadline: Deadline): () => void {
  const known = followers.get(signal)
  const deadlines = known ?? new Set()
  if (known === undefined) {
    followers.set(signal, deadlines)
    const abortAll = () => {
      for (const each of [...deadlines]) each.abort(signal.reason)
    }
    signal.addEventListener('abort', abortAll, { once: true })
  }
  deadlines.add(deadline)
  return () => deadlines.delete(deadline)
}

function timeoutError(timeoutMs: number, what: string): TimeoutError {
  const message =
    `${what} took longer than ${Math.round(timeoutMs)} ms, retries included. ` +
    'Repeat it, or allow more time with `timeoutMs`.'
  return new TimeoutError(message, { timeoutMs })
}

/** Waits for a promise that others may share: an abort ends this wait alone and leaves the promise running. */
export function untilAborted<T>(promise: Promise<T>, deadline: Deadline): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(deadline.reason)
    if (deadline.aborted) onAbort()
    else deadline.once('abort', onAbort)
    promise.then(
      (value) => {
        deadline.removeListener('abort', onAbort)
        resolve(value)
      },
      (reason: unknown) => {
        deadline.removeListener('abort', onAbort)
        reject(reason)
      },
    )
  })
}

/** Resolves after `ms` milliseconds, or rejects with the deadline's reason as soon as it aborts. */
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
