/**
 * Makes time pass faster in this process, for everything that is loaded after it: a minute's lease that nobody renews is
 * over in a few seconds. All processes with the same `CLOCK_STARTED_AT` (milliseconds since 1970) show the
 * same time.
 */
import { fastTime, timesFaster } from '../fast-time.js'

const { setTimeout: realSetTimeout } = globalThis
const realNow = performance.now.bind(performance)
const startedAt = fastTime(Number(process.env.CLOCK_STARTED_AT), Date.now())
const startedSince = realNow()

performance.now = () => startedSince + (realNow() - startedSince) * timesFaster
Date.now = () => Math.round(startedAt + (realNow() - startedSince) * timesFaster)
globalThis.setTimeout = Object.assign(
  (callback: (...values: unknown[]) => void, ms?: number, ...values: unknown[]) =>
    realSetTimeout(callback, (ms ?? 0) / timesFaster, ...values),
  realSetTimeout,
) as typeof setTimeout
