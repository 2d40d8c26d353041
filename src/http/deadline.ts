/** One time limit over a whole call, which knows what the call waits for when the time is over. */
import { TimeoutError, type TimeoutPhase } from '../errors.js'
import type { Address } from './address.js'

export interface DeadlineOptions {
  /** What takes the time, as the first words of the error: the name of a method. */
  readonly what: string
  /** The caller's signal: aborting it ends the call with the signal's own reason. */
  readonly signal?: AbortSignal | undefined
  /** Called when the call is over. */
  readonly onEnd?: (() => void) | undefined
}

/**
 * What is left of a call's time. A deadline aborts once: when the time is over, or when the caller aborts.
 *
 * Not an AbortSignal: measured with undici on loopback, an AbortSignal for each call costs a fifth of the throughput.
 */
export class Deadline {
  /** When the time is over at the latest, on the monotonic clock. */
  readonly endsAt: number
  aborted = false
  /** Requests that have left, or may have, in this time. */
  requestsSent = 0
  /** Once aborted: a `TimeoutError`, or the reason of the caller's signal. */
  reason: unknown
  /** How the last attempt failed, while another one follows. */
  lastFailure: Error | undefined
  /** Set by a transport that goes through proxies: which of them has not made a tunnel to this host yet. */
  awaitedProxy: ((host: string) => string | undefined) | undefined
  #phase: TimeoutPhase = 'connection'
  #address: Address | undefined
  #tokenRequest: (() => Deadline | undefined) | undefined
  readonly #timer: NodeJS.Timeout
  readonly #stopFollowing: (() => void) | undefined
  readonly #onEnd: (() => void) | undefined
  /** Replaced, not changed: as a rule there is one listener, and an array that grew would keep room for many. */
  #listeners: readonly (() => void)[] = none

  /** @throws the reason of a signal that is aborted already */
  constructor(timeoutMs: number, { what, signal, onEnd }: DeadlineOptions) {
    if (signal?.aborted) throw signal.reason
    this.#stopFollowing = signal && follow(signal, this)
    this.endsAt = performance.now() + timeoutMs
    this.#timer = setTimeout(() => this.abort(this.#timeoutError(timeoutMs, what)), timeoutMs)
    this.#onEnd = onEnd
  }

  /** An attempt begins, or the wait before one: nothing of this attempt has left. */
  waitFor(phase: 'connection' | 'backoff', address: Address): void {
    this.#phase = phase
    this.#address = address
  }

  /**
   * The call needs an access token first: from this endpoint, or from a function of the caller's.
   *
   * @param tokenRequest - the time limit of the request to the endpoint that is in flight, if there is one
   */
  waitForToken(endpoint: Address | undefined, tokenRequest?: () => Deadline | undefined): void {
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

  /** Calls `listener` once: now, if the deadline is aborted already, or as soon as it is. */
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

  /** Says what the connection of the current attempt waits for, if that is a proxy. */
  missingTunnel(): string | undefined {
    if (this.#phase !== 'connection' || this.#address === undefined) return undefined
    const { host } = this.#address
    const proxy = this.awaitedProxy?.(host)
    return proxy && `the proxy ${proxy} had made no tunnel to ${host}. Is it a proxy, and does it work?`
  }

  #timeoutError(timeoutMs: number, what: string): TimeoutError {
    const phase = this.#phase
    const waiting = phase === 'token' ? this.#tokenRequest?.() : this
    const cause = waiting?.lastFailure
    const missingTunnel = waiting?.missingTunnel()
    const message =
      `${what} took longer than ${Math.round(timeoutMs)} ms: ` +
      whatWasMissing(phase, this.#address, missingTunnel) +
      (cause === undefined ? '' : ` The last attempt before that failed: ${cause.message}`)
    return new TimeoutError(message, { timeoutMs, phase }, cause && { cause })
  }
}

const none: readonly (() => void)[] = []

/** What the call was waiting for when its time was over, and what to do about it. */
function whatWasMissing(
  phase: TimeoutPhase,
  address: Address | undefined,
  missingTunnel: string | undefined,
): string {
  switch (phase) {
    case 'connection':
      if (missingTunnel !== undefined) return `this attempt was not sent, because ${missingTunnel}`
      return (
        `this attempt was not sent, because no connection to ${address?.host} was made or became free. ` +
        'If many calls are made at once, make fewer at a time, or allow more time with `timeoutMs`; ' +
        'if not, check the network, or whether a proxy is needed.'
      )
    case 'token':
      if (address === undefined) {
        return '`auth.getAccessToken` had not returned a token. See what it waits for, or allow more time with `timeoutMs`.'
      }
      return missingTunnel === undefined
        ? `there was no access token from ${address.shown} yet. ` +
            'See whether the authorization server is slow or out of reach, or allow more time with `timeoutMs`.'
        : `there was no access token from ${address.shown} yet, because ${missingTunnel}`
    case 'answer':
      return `the request to ${address?.shown} was sent and not answered. The server may be slow: allow more time with \`timeoutMs\`.`
    case 'backoff':
      return `another attempt at ${address?.shown} was about to follow. Allow more time with \`timeoutMs\`, or shorter waits with \`retry\`.`
  }
}

/** The deadlines that end with a caller's signal. One listener serves all: Node.js takes many on a signal for a leak. */
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
