/** The time limit of a call, and the message of the `TimeoutError`: what the call was waiting for. */
import { TimeoutError } from '../errors.js'

/** What one call has attempted so far, and what it waits for now. Each call has its own record, which `send` updates. */
export interface Progress {
  /** What the call waits for. `answer`: the request of the current attempt was sent, or may have been. */
  phase: TimeoutError['phase']
  /** Where the access token comes from, if it comes from an endpoint. */
  tokenSource: TokenSourceProgress | undefined
  /** Where the current attempt goes. */
  address: Place | undefined
  /** Requests that were made, repeats included; token requests are not counted. */
  attempts: number
  /** When the current attempt began, on the monotonic clock. */
  attemptedSince: number
  /** Attempts whose outcome is unknown: they were sent, and no answer says whether they took effect. */
  lostAttempts: number
  /** HTTP status of the current attempt's answer. */
  status: number | undefined
  /** How the last attempt failed, while another one follows. */
  lastFailure: Error | undefined
}

/** An address in the parts that messages show: never its query. */
interface Place {
  readonly host: string
  readonly shown: string
}

/** A token endpoint, and the request to it that many calls may wait for. */
export interface TokenSourceProgress {
  readonly endpoint: Place
  /** The token request in flight, if there is one. */
  readonly request: Progress | undefined
}

/** The tunnels through proxies that a transport is making. */
export interface Tunnels {
  /** The proxy that has not made its tunnel to this host yet, with the variable that names it. */
  awaitedProxy(host: string): string | undefined
}

/** A call begins by waiting for its token. */
export function newProgress(tokenSource: TokenSourceProgress | undefined): Progress {
  return {
    phase: 'token',
    tokenSource,
    address: undefined,
    attempts: 0,
    attemptedSince: 0,
    lostAttempts: 0,
    status: undefined,
    lastFailure: undefined,
  }
}

export interface DeadlineOptions {
  /** What is limited, e.g. the name of a method: the first words of the error. */
  readonly what: string
  readonly timeoutMs: number
  /** The caller's signal: aborting it ends the call with the signal's own reason. */
  readonly signal?: AbortSignal | undefined
  /** Read for the message when the time has ended. */
  readonly progress: Progress
  readonly tunnels: Tunnels | undefined
}

/**
 * The time limit of one call. A deadline aborts once: when the time has ended, or when the caller aborts.
 *
 * Not an AbortSignal: measured with undici on loopback, an AbortSignal for each call costs a fifth of the throughput.
 */
export class Deadline {
  /** When the time ends at the latest, on the monotonic clock. */
  readonly endsAt: number
  aborted = false
  /** Once aborted: a `TimeoutError`, or the reason of the caller's signal. */
  reason: unknown
  readonly #options: DeadlineOptions
  readonly #timer: NodeJS.Timeout
  readonly #stopFollowing: (() => void) | undefined
  /** Copy-on-write: usually one listener. */
  #listeners: readonly (() => void)[] = none

  /** @throws the reason of a signal that is aborted already */
  constructor(options: DeadlineOptions) {
    const { signal, timeoutMs } = options
    if (signal?.aborted) throw signal.reason
    this.#options = options
    this.#stopFollowing = signal && follow(signal, this)
    this.endsAt = performance.now() + timeoutMs
    this.#timer = setTimeout(() => this.abort(timeoutError(options)), timeoutMs)
  }

  /**
   * Aborts if the time has ended. To be called before a request leaves: when a process goes on that stood still, its
   * sockets are served before its timers, so that a connection that is made then would send a request long after its time.
   */
  checkClock(): void {
    if (performance.now() >= this.endsAt) this.abort(timeoutError(this.#options))
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

  /**
   * Waits for a promise that others may share: an abort ends this wait alone, and leaves the promise running.
   *
   * @throws the deadline's reason, as soon as the deadline is aborted
   */
  waitFor<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const onAbort = () => reject(this.reason)
      this.onAbort(onAbort)
      promise.then(
        (value) => {
          this.removeListener(onAbort)
          resolve(value)
        },
        (reason: unknown) => {
          this.removeListener(onAbort)
          reject(reason)
        },
      )
    })
  }

  /**
   * Runs `work` with an AbortController that aborts with this deadline. Waits until then at most, also for `work` that
   * ignores the signal.
   */
  async withController<T>(work: (controller: AbortController) => Promise<T>): Promise<T> {
    const controller = new AbortController()
    const onAbort = () => controller.abort(this.reason)
    this.onAbort(onAbort)
    try {
      return await this.waitFor(work(controller))
    } finally {
      this.removeListener(onAbort)
    }
  }

  /** @throws the deadline's reason, as soon as the deadline is aborted */
  async sleep(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const slept = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms)
    })
    try {
      await this.waitFor(slept)
    } finally {
      clearTimeout(timer)
    }
  }

  /** The call has ended: nothing aborts this deadline any more. */
  end(): void {
    clearTimeout(this.#timer)
    this.#stopFollowing?.()
  }
}

const none: readonly (() => void)[] = []

/** The deadlines that follow a caller's signal, with one listener for all: Node.js warns of a leak if there are many. */
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

/** A call in phase `token` waits for the token request, which many calls share: the message describes that request. */
function timeoutError({ what, timeoutMs, progress, tunnels }: DeadlineOptions): TimeoutError {
  const { phase } = progress
  const awaited = phase === 'token' ? progress.tokenSource?.request : progress
  const cause = awaited?.lastFailure
  const message =
    `${what} took longer than ${Math.round(timeoutMs)} ms: ` +
    whatWasMissing(progress, missingTunnel(awaited, tunnels)) +
    (cause === undefined ? '' : ` The last attempt before that failed: ${cause.message}`)
  return new TimeoutError(message, { timeoutMs, phase }, cause && { cause })
}

function whatWasMissing(
  { phase, address, tokenSource }: Progress,
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
      if (tokenSource === undefined) {
        return '`auth.getAccessToken` had not returned a token. See what it waits for, or allow more time with `timeoutMs`.'
      }
      return missingTunnel === undefined
        ? `there was no access token from ${tokenSource.endpoint.shown} yet. ` +
            'See whether the authorization server is slow or out of reach, or allow more time with `timeoutMs`.'
        : `there was no access token from ${tokenSource.endpoint.shown} yet, because ${missingTunnel}`
    case 'answer':
      return `the request to ${address?.shown} was sent and not answered. The server may be slow: allow more time with \`timeoutMs\`.`
    case 'backoff':
      return `another attempt at ${address?.shown} was about to follow. Allow more time with \`timeoutMs\`, or shorter waits with \`retry\`.`
  }
}

/** Why there is no connection yet, if a proxy is the reason. */
function missingTunnel(awaited: Progress | undefined, tunnels: Tunnels | undefined): string | undefined {
  if (awaited?.phase !== 'connection' || awaited.address === undefined) return undefined
  const { host } = awaited.address
  const proxy = tunnels?.awaitedProxy(host)
  return proxy && `the proxy ${proxy} had made no tunnel to ${host}. Is it a proxy, and does it work?`
}
