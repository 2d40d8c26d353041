/** One time limit over a whole call, and waits that end with it. */
import { TimeoutError } from '../errors.js'

/** What a caller may set on each call. */
export interface CallOptions {
  /** Aborts the call: it rejects with the signal's own reason. */
  readonly signal?: AbortSignal | undefined
  /** Limit for the whole call, token and retries included, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined
}

/**
 * What is left of a call's time. It aborts once, when that is over or when the caller aborts.
 *
 * Not an AbortSignal: measured with undici on loopback, one for each call costs a fifth of the throughput.
 */
export class Deadline {
  /** When it is over at the latest, on the monotonic clock. */
  readonly endsAt: number
  aborted = false
  /** Requests that have left, or may have, in this time. */
  requestsSent = 0
  /** Once aborted: a `TimeoutError`, or the reason of the caller's signal. */
  reason: unknown
  readonly #timer: NodeJS.Timeout
  readonly #stopFollowing: (() => void) | undefined
  readonly #onEnd: (() => void) | undefined
  /** Replaced, not changed: there is one listener, as a rule, and a list that grows keeps room for many. */
  #listeners: readonly (() => void)[] = none

  /**
   * @param options.what - what takes the time, for the error
   * @param options.onEnd - called when the call is over
   * @throws the reason of a signal that is aborted already
   */
  constructor(
    timeoutMs: number,
    {
      signal,
      what = 'The call',
      onEnd,
    }: { signal?: AbortSignal | undefined; what?: string; onEnd?: () => void },
  ) {
    if (signal?.aborted) throw signal.reason
    this.#stopFollowing = signal && follow(signal, this)
    this.endsAt = performance.now() + timeoutMs
    this.#timer = setTimeout(() => this.abort(timeoutError(timeoutMs, what)), timeoutMs)
    this.#onEnd = onEnd
  }

  abort(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    const listeners = this.#listeners
    this.#listeners = none
    for (const listener of listeners) listener()
  }

  /** Calls `listener` once, now or should this be aborted. */
  onAbort(listener: () => void): void {
    if (this.aborted) listener()
    else this.#listeners = this.#listeners.length === 0 ? [listener] : [...this.#listeners, listener]
  }

  removeListener(listener: () => void): void {
    const others = this.#listeners.filter((each) => each !== listener)
    this.#listeners = others.length === 0 ? none : others
  }

  /** The call is over: nothing will abort it any more. */
  end(): void {
    clearTimeout(this.#timer)
    this.#stopFollowing?.()
    this.#onEnd?.()
  }
}

const none: readonly (() => void)[] = []

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

/** Runs `work` with a real AbortSignal, and does not wait for it beyond the deadline even if it ignores that. */
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
