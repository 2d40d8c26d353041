/** One time limit over a whole call, which knows what the call waits for when the time is over. */
import { TimeoutError, type TimeoutPhase } from '../errors.js'
import type { Address } from './address.js'

/** Tells how the last attempt at something failed, if one did. */
export interface LastFailure {
  readonly lastFailure: Error | undefined
}

export interface DeadlineOptions {
  /** What takes the time, as the first words of the error: the name of a method. */
  readonly what: string
  /** The caller's: its abort ends the call with its own reason. */
  readonly signal?: AbortSignal | undefined
  /** Called when the call is over. */
  readonly onEnd?: (() => void) | undefined
}

/**
 * What is left of a call's time. It aborts once, when that is over or when the caller aborts.
 *
 * Not an AbortSignal: measured with undici on loopback, one for each call costs a fifth of the throughput.
 */
export class Deadline implements LastFailure {
  /** When the time is over at the latest, on the monotonic clock. */
  readonly endsAt: number
  aborted = false
  /** Requests that have left, or may have, in this time. */
  requestsSent = 0
  /** Once aborted: a `TimeoutError`, or the reason of the caller's signal. */
  reason: unknown
  /** How the last attempt failed, while another one follows. */
  lastFailure: Error | undefined
  #phase: TimeoutPhase = 'connection'
  #address: Address | undefined
  #tokenRequest: LastFailure | undefined
  readonly #timer: NodeJS.Timeout
  readonly #stopFollowing: (() => void) | undefined
  readonly #onEnd: (() => void) | undefined
  /** Replaced, not changed: there is one listener, as a rule, and a list that grows keeps room for many. */
  #listeners: readonly (() => void)[] = none

  /** @throws the reason of a signal that is aborted already */
  constructor(timeoutMs: number, { what, signal, onEnd }: DeadlineOptions) {
    if (signal?.aborted) throw signal.reason
    this.#stopFollowing = signal && follow(signal, this)
    this.endsAt = performance.now() + timeoutMs
    this.#timer = setTimeout(() => this.abort(this.#timeoutError(timeoutMs, what)), timeoutMs)
    this.#onEnd = onEnd
  }

  /** An attempt begins, or the wait before one: nothing of it has left. */
  waitFor(phase: 'connection' | 'backoff', address: Address): void {
    this.#phase = phase
    this.#address = address
  }

  /** The call needs an access token first: from this endpoint, or from a function of the caller's. */
  waitForToken(endpoint: Address | undefined, tokenRequest?: LastFailure): void {
    this.#phase = 'token'
    this.#address = endpoint
    this.#tokenRequest = tokenRequest
  }

  /** The request of the current attempt has left, or may have. */
  requestLeft(): void {
    this.#phase = 'answer'
    this.requestsSent++
  }

  abort(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    const listeners = this.#listeners
    this.#listeners = none
    for (const listener of listeners) listener()
  }

  /** Calls `listener` once: now, if this is aborted, or when it is. */
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

  #timeoutError(timeoutMs: number, what: string): TimeoutError {
    const phase = this.#phase
    const cause = (phase === 'token' ? this.#tokenRequest : this)?.lastFailure
    const message =
      `${what} took longer than ${Math.round(timeoutMs)} ms: ${whatWasMissing(phase, this.#address)}` +
      (cause === undefined ? '' : ` The last attempt before that failed: ${cause.message}`)
    return new TimeoutError(message, { timeoutMs, phase }, cause && { cause })
  }
}

const none: readonly (() => void)[] = []

/** What the call was waiting for when its time was over, and what to do about it. */
function whatWasMissing(phase: TimeoutPhase, address: Address | undefined): string {
  switch (phase) {
    case 'connection':
      return (
        `this attempt was not sent, because no connection to ${address?.host} was made or became free. ` +
        'If many calls are made at once, make fewer at a time, or allow more time with `timeoutMs`; ' +
        'if not, check the network, or whether a proxy is needed.'
      )
    case 'token':
      return address === undefined
        ? '`auth.getAccessToken` had not returned a token. See what it waits for, or allow more time with `timeoutMs`.'
        : `there was no access token from ${address.shown} yet. ` +
            'See whether the authorization server is slow or out of reach, or allow more time with `timeoutMs`.'
    case 'answer':
      return `the request to ${address?.shown} was sent and not answered. The server may be slow: allow more time with \`timeoutMs\`.`
    case 'backoff':
      return `another attempt at ${address?.shown} was about to follow. Allow more time with \`timeoutMs\`, or shorter waits with \`retry\`.`
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
