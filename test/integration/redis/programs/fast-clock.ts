/**
 * Makes time pass faster in this process, for everything that is loaded after it: a claim that was left behind is taken
 * over after five seconds. All processes with the same `CLOCK_STARTED_AT` (milliseconds since 1970) show the
 * same time.
 */
import { fastTime, timesFaster } from '../fast-time.js'

const { setTimeout: realSetTimeout } = globalThis
const realNow = performance.now.bind(performance)
/** When `realNow()` was 0. Read once for both clocks: between two readings a busy machine may let milliseconds pass. */
const startedAt = fastTime(Number(process.env.CLOCK_STARTED_AT), performance.timeOrigin)

performance.now = () => realNow() * timesFaster
Date.now = () => Math.round(startedAt + realNow() * timesFaster)
globalThis.setTimeout = Object.assign(
  (callback: (...values: unknown[]) => void, ms?: number, ...values: unknown[]) =>
    realSetTimeout(callback, (ms ?? 0) / timesFaster, ...values),
  realSetTimeout,
) as typeof setTimeout
