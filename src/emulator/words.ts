/** How the page and the terminal say what happened. */
import { isConflict, isError } from '../shared/statuses.js'
import type { EndReason } from './service/subscription-store.js'

export const endReasons: Readonly<Record<EndReason, string>> = {
  unsubscribed: 'it was unsubscribed',
  replaced: 'a new one replaced it',
  'three-failures': 'three callbacks in a row failed',
  'by-request': 'the page or the program ended it',
}

interface Ending {
  readonly status?: number | undefined
  readonly error?: string | undefined
  readonly durationMs?: number | undefined
  readonly refusal?: { readonly code: string } | undefined
}

/** A 409 to an identical subscription is no failure: a keeper proves by it that the subscription exists. */
export function isFailed({ status, error, durationMs, refusal }: Ending): boolean {
  if (durationMs === undefined || refusal?.code === 'duplicate_subscription') return false
  return error !== undefined || status === undefined || isError(status)
}

/** `neutral`: a 409, whatever its reason. */
export type Tone = 'good' | 'bad' | 'neutral' | 'waiting'

export function toneOf(ending: Ending): Tone {
  if (ending.durationMs === undefined) return 'waiting'
  if (ending.status !== undefined && isConflict(ending.status)) return 'neutral'
  return isFailed(ending) ? 'bad' : 'good'
}

/** How the error begins if a fault broke a request or a callback. */
export const injectedFault = 'An injected fault'

/** From each length on, in milliseconds, a duration is given in this unit. */
const units = [
  { from: 2 * 24 * 3_600_000, ms: 24 * 3_600_000, name: ' days' },
  { from: 2 * 3_600_000, ms: 3_600_000, name: ' hours' },
  { from: 2 * 60_000, ms: 60_000, name: ' minutes' },
  { from: 10_000, ms: 1_000, name: ' s' },
] as const

/** A duration for people: `340 ms`, `1.2 s`, `90 s`, `60 minutes`, `5 hours`. */
export function durationInWords(durationMs: number): string {
  const unit = units.find(({ from }) => durationMs >= from)
  if (unit !== undefined) return `${Math.round(durationMs / unit.ms)}${unit.name}`
  if (durationMs >= 1_000) return `${Number((durationMs / 1_000).toFixed(1))} s`
  return `${Math.round(durationMs)} ms`
}

/** `12:03:04.567`, in the local time zone. */
export function clock(at: number): string {
  const date = new Date(at)
  return `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, '0')}`
}

/** The environment variables by which a client finds an emulator, in the order of `.env`. */
export function clientVariables(
  emulator: Readonly<Record<'baseUrl' | 'authUrl' | 'domain' | 'clientId' | 'clientSecret', string>>,
  caFile: string,
): Record<string, string> {
  return {
    NOTIFICATION_BASE_URL: emulator.baseUrl,
    NOTIFICATION_AUTH_URL: emulator.authUrl,
    NOTIFICATION_DOMAIN: emulator.domain,
    NOTIFICATION_CLIENT_ID: emulator.clientId,
    NOTIFICATION_CLIENT_SECRET: emulator.clientSecret,
    NOTIFICATION_CA_FILE: caFile,
  }
}
