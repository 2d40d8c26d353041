/**
 * Processes in virtual time: each has its own clocks and timers, and can be suspended or killed. Which one reads a
 * clock or sets a timer is known from the asynchronous context; outside of any, the globals are the real ones.
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
  scrypt: crypto.scrypt,
}
const longestDelayMs = 2 ** 31 - 1
/** What the wall clocks show when a world begins. */
export const epochMs = Date.UTC(2026, 0, 1)

/** Where a process dies, or stands still: at its n-th operation from now. */
export interface Fuse {
  operations: number
  /** Before or after the operation had its effect. */
  readonly blows: 'before' | 'after'
  /** Default: the process is killed. */
  readonly happen?: () => void
}

export class VirtualProcess {
  readonly name: string
  readonly time: VirtualTime
  /** By how much its wall clock is ahead of the true time, and since when: the newest last. */
  readonly wallSkews: { readonly sinceMs: number; readonly skewMs: number }[] = []
  /** Monotonic clocks begin anywhere: a stamp of one means nothing to another process. */
  #monotonicStartMs: number
  #state: 'running' | 'suspended' | 'dead' = 'running'
  #asleepSinceMs: number | undefined
  /** What came while it was suspended. */
  readonly #held: (() => void)[] = []
  readonly #random: () => number
  #fuse: Fuse | undefined
  diedAtMs = Number.POSITIVE_INFINITY
  /** Called when it is killed. */
  onDeath: () => void = () => {}

  constructor(
    name: string,
    time: VirtualTime,
    { monotonicStartMs, random }: { monotonicStartMs: number; random: () => number },
  ) {
    this.name = name
    this.time = time
    this.#monotonicStartMs = monotonicStartMs - time.nowMs
    this.wallSkews.push({ sinceMs: time.nowMs, skewMs: 0 })
    this.#random = random
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

  /** By how much its wall clock is ahead of the true time. */
  get wallSkewMs(): number {
    return this.wallSkews.at(-1)?.skewMs ?? 0
  }

  jumpWallClock(byMs: number): void {
    this.wallSkews.push({ sinceMs: this.time.nowMs, skewMs: this.wallSkewMs + byMs })
  }

  random(): number {
    return this.#random()
  }

  /** From now on nothing it does has an effect, and nothing reaches it. */
  kill(): void {
    if (this.isDead) return
    this.#state = 'dead'
    this.diedAtMs = this.time.nowMs
    this.#held.length = 0
    this.onDeath()
  }

  /** Something happens to it at one of its next operations on the outside world. */
  setFuse(fuse: Fuse | undefined): void {
    this.#fuse = fuse && { ...fuse }
  }

  /**
   * Carries out an operation on the outside world, unless the process is dead or dies now.
   *
   * @param never - what a dead process gets: nothing that it does has an effect
   */
  operate<T>(issue: () => T, never: T): T {
    const fuse = this.#fuse
    if (fuse !== undefined) fuse.operations -= 1
    if (fuse?.blows === 'before') this.#blow(fuse)
    if (this.isDead) return never
    const result = issue()
    if (fuse?.blows === 'after') this.#blow(fuse)
    return result
  }

  #blow({ operations, happen = () => this.kill() }: Fuse): void {
    if (operations > 0) return
    this.#fuse = undefined
    happen()
  }

  suspend(): void {
    if (this.#state === 'running') this.#state = 'suspended'
  }

  /** Suspends it together with its machine: meanwhile the monotonic clock, and all timers, stand still. */
  sleep(): void {
    if (this.#state !== 'running') return
    this.#state = 'suspended'
    this.#asleepSinceMs = this.time.nowMs
  }

  /** What came in between comes now, in the order in which it came. */
  resume(): void {
    if (this.#state !== 'suspended') return
    this.#state = 'running'
    if (this.#asleepSinceMs !== undefined) this.#monotonicStartMs -= this.time.nowMs - this.#asleepSinceMs
    this.#asleepSinceMs = undefined
    for (const held of this.#held.splice(0)) this.time.schedule(0, () => this.#deliver(held))
  }

  /** Something from outside reaches the process after a while: a timer, an answer. Returns a way to take it back. */
  receive(delayMs: number, receive: () => void): () => void {
    let isCancelled = false
    const receiveUnlessCancelled = () => {
      if (!isCancelled) receive()
    }
    this.time.schedule(delayMs, () => !isCancelled && this.#deliver(receiveUnlessCancelled))
    return () => {
      isCancelled = true
    }
  }

  /** Calls back when its monotonic clock has gone on by a delay. Returns a way to take it back. */
  setTimer(delayMs: number, callback: () => void): () => void {
    const dueMs = this.time.nowMs + this.#monotonicStartMs + delayMs
    let cancel = () => {}
    const wait = (restMs: number) => {
      cancel = this.receive(restMs, () => {
        const stillMs = dueMs - this.time.nowMs - this.#monotonicStartMs
        if (stillMs > 0.001) wait(stillMs)
        else callback()
      })
    }
    wait(delayMs)
    return () => cancel()
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

  #deliver(receive: () => void): boolean {
    if (this.#state === 'suspended') this.#held.push(receive)
    if (this.#state !== 'running') return false
    this.run(receive)
    return true
  }
}

class VirtualTimer {
  readonly #start: () => () => void
  cancel: () => void

  constructor(start: () => () => void) {
    this.#start = start
    this.cancel = start()
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }

  refresh(): this {
    this.cancel()
    this.cancel = this.#start()
    return this
  }
}

/** Lets virtual processes find their clocks and timers in the globals. Returns the way back. */
export function installVirtualProcesses(): () => void {
  function virtualSetTimeout(callback: (...args: unknown[]) => void, delayMs?: number, ...args: unknown[]) {
    const process = current.getStore()
    if (process === undefined) return real.setTimeout(callback, delayMs, ...args)
    // As Node.js does: what is no delay, and one that is too long, is a millisecond.
    const isDelay = delayMs !== undefined && delayMs >= 1 && delayMs <= longestDelayMs
    const wholeMs = isDelay ? Math.trunc(delayMs) : 1
    return new VirtualTimer(() => process.setTimer(wholeMs, () => callback(...args)))
  }
  function virtualClearTimeout(timer: unknown) {
    if (timer instanceof VirtualTimer) timer.cancel()
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
  Object.assign(crypto, { scrypt: virtualScrypt })
  syncBuiltinESMExports()
  return () => {
    Object.assign(crypto, { scrypt: real.scrypt })
    syncBuiltinESMExports()
    Object.assign(globalThis, {
      setTimeout: real.setTimeout,
      clearTimeout: real.clearTimeout,
      Date: real.Date,
    })
    Math.random = real.random
    performance.now = real.now
  }
}

/** Takes virtual time instead of real time, and is no secret hash. */
function virtualScrypt(...args: unknown[]): void {
  const process = current.getStore()
  if (process === undefined) {
    Reflect.apply(real.scrypt, crypto, args)
    return
  }
  const [password, salt, keyLength] = args
  const callback = args.at(-1) as (error: Error | null, derivedKey: Buffer) => void
  const hash = crypto.createHash('sha512').update(String(salt)).update(String(password)).digest()
  process.receive(60, () => callback(null, hash.subarray(0, Number(keyLength))))
}

/** The virtual process whose code runs now. */
export function currentProcess(): VirtualProcess | undefined {
  return current.getStore()
}

/** A reproducible sequence of numbers from 0 to 1 (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
