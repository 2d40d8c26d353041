/** How times, addresses and reasons are written. */
import type { EntryView, SubscriptionView } from '../protocol.js'

type EndReason = NonNullable<SubscriptionView['ended']>['reason']

const reasons: Readonly<Record<EndReason, string>> = {
  'three-failures': 'three callbacks in a row failed',
  unsubscribed: 'its owner unsubscribed',
  replaced: 'replaced by a new one (recreateIfExists)',
  'by-request': 'ended here, on request',
}

export function reasonInWords(reason: EndReason): string {
  return reasons[reason]
}

/** `12:03:04.567`, in the local time zone. */
export function clock(at: number): string {
  const date = new Date(at)
  const parts = [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => pad(part, 2))
  return `${parts.join(':')}.${pad(date.getMilliseconds(), 3)}`
}

export function dateAndTime(at: number): string {
  const date = new Date(at)
  return `${date.getFullYear()}-${pad(date.getMonth() + 1, 2)}-${pad(date.getDate(), 2)} ${clock(at)}`
}

export function duration(ms: number): string {
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}

/** An address without its scheme: there is hardly another than https. */
export function shortUrl(url: string): string {
  return url.replace(/^https:\/\//, '')
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`
}

/** The first names and how many more: a subscription can have thousands of users. */
export function nameList(names: readonly string[], shown = 3): string {
  if (names.length <= shown) return names.join(', ')
  return `${names.slice(0, shown).join(', ')} and ${(names.length - shown).toLocaleString('en')} more`
}

/** Whether a create found an identical subscription: for a keeper, this 409 proves that the subscription exists. */
export function isDuplicate(entry: EntryView): boolean {
  return entry.kind === 'request' && entry.refusal?.code === 'duplicate_subscription'
}

/**
 * Whether an entry is bad news: an error, a status from 400 on, or a subscription that three failures ended. Not what
 * {@link isDuplicate} says.
 */
export function isFailure(entry: EntryView): boolean {
  if (entry.kind === 'note') return entry.note === 'ended' && entry.reason === 'three-failures'
  if (isDuplicate(entry)) return false
  return entry.error !== undefined || (entry.status !== undefined && entry.status >= 400)
}

/** The fields of a form, decoded. */
export function formFields(body: string): [string, string][] {
  return [...new URLSearchParams(body)]
}

function pad(number: number, digits: number): string {
  return String(number).padStart(digits, '0')
}
