/** How addresses, numbers and names are written; src/emulator/words.ts has what the terminal writes, too. */
import { isUnauthorized } from '../../../shared/statuses.js'
import { clock, injectedFault, isFailed } from '../../words.js'
import type { CallbackView, EntryView, RequestView } from '../views.js'

export function dateAndTime(at: number): string {
  // The Swedish form of a date is that of ISO 8601.
  return `${new Date(at).toLocaleDateString('sv')} ${clock(at)}`
}

/** An address without `https:`; of a long one both ends, because addresses differ at their ends. */
export function shortUrl(url: string): string {
  const text = url.replace(/^https:\/\//, '')
  return text.length > 160 ? `${text.slice(0, 60)}…${text.slice(-90)}` : text
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
  return entry.kind === 'ended' ? entry.reason === 'three-failures' : isFailed(entry)
}

/** Why a request or a callback failed: what the answer says, or why there is none; nothing if the entry's fault says it. */
export function reasonOf(entry: RequestView | CallbackView): string | undefined {
  if (!isFailed(entry)) return undefined
  const refusal = entry.kind === 'request' ? entry.refusal?.message : undefined
  const error = entry.error?.startsWith(injectedFault) ? undefined : entry.error
  // The receiver of this package answers a wrong secret without a body.
  const isOfSecret = entry.kind === 'callback' && isUnauthorized(entry.status ?? 0)
  const where = isOfSecret && error ? ": see callback.refused in the receiver's log" : ''
  return refusal ?? (textOf(entry.answer?.body ?? '') || (error && error + where))
}

/** The beginning of a body; of an HTML page what a reader sees. */
function textOf(body: string): string {
  const text = body.trimStart().startsWith('<') ? body.replace(/<[^<>]*>/g, ' ') : body
  return text.replace(/\s+/g, ' ').trim().slice(0, 200)
}

/** The subscription that an entry is about, if it is about one. */
export function subscriptionOf(entry: EntryView): number | undefined {
  if (entry.kind === 'tokens-revoked') return undefined
  return entry.kind === 'ended' ? entry.subscription.subscriptionId : entry.subscriptionId
}
