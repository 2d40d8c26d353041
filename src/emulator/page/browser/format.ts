/** How addresses, numbers and names are written; src/emulator/words.ts has what the terminal writes, too. */
import { clock, toneOf } from '../../words.js'
import type { EntryView } from '../views.js'

export function dateAndTime(at: number): string {
  // The Swedish form of a date is that of ISO 8601.
  return `${new Date(at).toLocaleDateString('sv')} ${clock(at)}`
}

/** An address without its scheme, which is nearly always https. */
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

/** Whether an entry is bad news: an error, a status from 400 on, or a subscription that three failures ended. */
export function isFailure(entry: EntryView): boolean {
  if (entry.kind === 'tokens-revoked') return false
  return entry.kind === 'ended' ? entry.reason === 'three-failures' : toneOf(entry) === 'bad'
}

/** The subscription that an entry is about, if it is about one. */
export function subscriptionOf(entry: EntryView): number | undefined {
  if (entry.kind === 'tokens-revoked') return undefined
  return entry.kind === 'ended' ? entry.subscription.subscriptionId : entry.subscriptionId
}

export function formFields(body: string): [string, string][] {
  return [...new URLSearchParams(body)]
}
