/**
 * Processes in virtual time: each has its own clocks and timers, and can be suspended or killed. The asynchronous context
 * tells which process reads a clock or sets a timer; outside of all processes the globals are the real ones.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import type { VirtualTime } from './virtual-time.js'

const current = new AsyncLocalStorage<VirtualProcess>()
const real = {
  setTimeout,
  clearTimeout,
  Date,
  random: Math.random,
  now: performance.now.bind(performance),
  pbkdf2: crypto.pbkdf2,
}
const longestDelayMs = 2 ** 31 - 1
/** What the wall clocks show when a world begins. */
export const epochMs = Date.UTC(2026, 0, 1)

/** Something that happens to a process at its n-th operation from now: it dies, or stands still. */
export interface Fuse {
  operations: number
  /** Before or after the operation had its effect. */
  readonly blows: 'before' | 'after'
  readonly happen: () => void
}

export class VirtualProcess {
  /** By how much its wall clock is ahead of the true time. */
  wallSkewMs = 0
  /** Monotonic clocks begin anywhere: a stamp of one means nothing to another process. */
  #monotonicStartMs: number
  #state: 'running' | 'suspended' | 'dead' = 'running'
  #asleepSinceMs: number | undefined
  /** When it last went on after it had stood still. */
  resumedMs = 0
  /** What came while it was suspended. */
  readonly #held: (() => void)[] = []
  #fuse: Fuse | undefined
  onDeath: () => void = () => {}

  constructor(
    readonly name: string,
    readonly time: VirtualTime,
    readonly random: () => number,
  ) {
    this.#monotonicStartMs = Math.floor(random() * 1e7) - time.nowMs
  }

  get isDead(): boolean {
    return this.#state === 'dead'
  }

  get isRunning(): boolean {
    return this.#state === 'running'
  }

  run<T>(code: () => T): T {
    return current.run(this, code)
  }

  monotonicMs(): number {
    this.time.step()
    return this.time.nowMs + this.#monotonicStartMs
  }

  wallMs(): number {
    this.time.step()
    return epochMs + Math.floor(this.time.nowMs) + this.wallSkewMs
  }

  /** From now on it has no effect on anything, and nothing reaches it. */
  kill(): void {
    if (this.isDead) return
    this.#state = 'dead'
    this.#held.length = 0
    this.onDeath()
  }

  setFuse(fuse: Fuse | undefined): void {
    this.#fuse = fuse
  }

  /** Carries out an operation on the outside world. If the process is dead, or dies now, it never hears of it. */
  operate<T>(operation: () => T): T | Promise<never> {
    const fuse = this.#fuse
    const isBlown = fuse !== undefined && --fuse.operations <= 0
    const blow = () => {
      this.#fuse = undefined
      fuse?.happen()
    }
    if (isBlown && fuse.blows === 'before') blow()
    if (this.isDead) return new Promise(() => {})
    const result = operation()
    if (isBlown && fuse.blows === 'after') blow()
    return this.isDead ? new Promise(() => {}) : result
  }

  /** It gets no processor time, as after SIGSTOP. */
  suspend(): void {
    if (this.#state === 'running') this.#state = 'suspended'
  }

  /** It is suspended together with its machine: meanwhile the monotonic clock and all timers stand still. */
  sleep(): void {
    if (this.#state !== 'running') return
    this.#state = 'suspended'
    this.#asleepSinceMs = this.time.nowMs
  }

  /** What came meanwhile comes now, in the order in which it came. */
  resume(): void {
    if (this.#state !== 'suspended') return
    this.#state = 'running'
    this.resumedMs = this.time.nowMs
    if (this.#asleepSinceMs !== undefined) this.#monotonicStartMs -= this.time.nowMs - this.#asleepSinceMs
    this.#asleepSinceMs = undefined
    for (const held of this.#held.splice(0)) this.time.schedule(0, () => this.#deliver(held))
  }

  /** Something from outside reaches the process after a while: a delivery, an answer. */
  receive(delayMs: number, receive: () => void): void {
    this.time.schedule(delayMs, () => this.#deliver(receive))
  }

  /** A promise that the outside world settles. */
  after<T>(delayMs: number, outcome: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.receive(delayMs, () => {
        try {
          resolve(outcome())
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  /** Calls back when its monotonic clock has advanced by the delay. Returns a function that cancels the timer. */
  setTimer(delayMs: number, callback: () => void): () => void {
    const dueMs = this.time.nowMs + this.#monotonicStartMs + delayMs
    let isCancelled = false
    const fire = () => {
      if (isCancelled) return
      const restMs = dueMs - this.time.nowMs - this.#monotonicStartMs
      if (restMs > 0.001) wait(restMs)
      else callback()
    }
    const wait = (restMs: number) =>
      this.time.schedule(restMs, () => (isCancelled ? false : this.#deliver(fire)))
    wait(delayMs)
    return () => {
      isCancelled = true
    }
  }

  #deliver(receive: () => void): boolean {
    if (this.#state === 'suspended') this.#held.push(receive)
    if (this.#state !== 'running') return false
    this.run(receive)
    return true
  }
}

/** Lets virtual processes find their clocks and timers in the globals. Returns a function that restores the real ones. */
export function installVirtualProcesses(): () => void {
  function virtualSetTimeout(callback: (...args: unknown[]) => void, delayMs?: number, ...args: unknown[]) {
    const process = current.getStore()
    if (process === undefined) return real.setTimeout(callback, delayMs, ...args)
    // Node.js, too, takes a delay that is none, or that is too long, for a millisecond.
    const isDelay = delayMs !== undefined && delayMs >= 1 && delayMs <= longestDelayMs
    return process.setTimer(isDelay ? Math.trunc(delayMs) : 1, () => callback(...args))
  }
  function virtualClearTimeout(timer: unknown) {
    if (typeof timer === 'function') timer()
    else real.clearTimeout(timer as NodeJS.Timeout | undefined)
  }
  class VirtualDate extends real.Date {
    constructor(...args: unknown[]) {
      if (args.length === 0) super(VirtualDate.now())
      else super(...(args as [number]))
    }
    static override now(): number {
      return current.getStore()?.wallMs() ?? real.Date.now()
    }
  }
  Object.assign(globalThis, {
    setTimeout: virtualSetTimeout,
    clearTimeout: virtualClearTimeout,
    Date: VirtualDate,
  })
  Math.random = () => current.getStore()?.random() ?? real.random()
  performance.now = () => current.getStore()?.monotonicMs() ?? real.now()
  Object.assign(crypto, { pbkdf2: virtualPbkdf2 })
  syncBuiltinESMExports()
  return () => {
    const { now, random, pbkdf2, ...globals } = real
    Object.assign(globalThis, globals)
    Math.random = random
    performance.now = now
    Object.assign(crypto, { pbkdf2 })
    syncBuiltinESMExports()
  }
}

/** No secret hash, and done at once: the keepers of a real process take turns, which one that is dead would keep. */
function virtualPbkdf2(...args: unknown[]): void {
  const process = current.getStore()
  if (process === undefined) {
    Reflect.apply(real.pbkdf2, crypto, args)
    return
  }
  const [password, salt, , keyLength] = args
  const callback = args.at(-1) as (error: Error | null, derivedKey: Buffer) => void
  const hash = crypto.createHash('sha512').update(String(salt)).update(String(password)).digest()
  callback(null, hash.subarray(0, Number(keyLength)))
}

export function currentProcess(): VirtualProcess | undefined {
  return current.getStore()
}
