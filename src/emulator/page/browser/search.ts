/** Finds entries and subscriptions by what is typed into a filter. */
import { endReasons } from '../../words.js'
import type { EntryView, SubscriptionView } from '../views.js'
import { isFailure, subscriptionOf } from './format.js'

export interface EntryFilter {
  readonly kind: 'all' | 'request' | 'callback' | 'failure'
  readonly text: string
}

export function filterEntries(
  entries: readonly EntryView[],
  { kind, text }: EntryFilter,
): readonly EntryView[] {
  const matches = matcher(text)
  if (kind === 'all' && matches === undefined) return entries
  return entries.filter((entry) => {
    if (kind === 'failure' ? !isFailure(entry) : kind !== 'all' && entry.kind !== kind) return false
    return matches === undefined || matches(textOfEntry(entry))
  })
}

export function filterSubscriptions<Item extends SubscriptionView>(
  subscriptions: readonly Item[],
  text: string,
): readonly Item[] {
  const matches = matcher(text)
  if (matches === undefined) return subscriptions
  return subscriptions.filter((subscription) => matches(textOfSubscription(subscription)))
}

/** Every word has to occur; `#3` is subscription 3 and not 30. */
function matcher(text: string): ((haystack: string) => boolean) | undefined {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return undefined
  return (haystack) =>
    words.every((word) => (/^#\d+$/.test(word) ? haystack.includes(`${word} `) : haystack.includes(word)))
}

const entryTexts = new WeakMap<EntryView, string>()

function textOfEntry(entry: EntryView): string {
  const text = entryTexts.get(entry) ?? `${wordsOf(entry).join(' ').toLowerCase()} `
  entryTexts.set(entry, text)
  return text
}

/** The space after an ID lets `#3 ` be found. */
function wordsOf(entry: EntryView): unknown[] {
  if (entry.kind === 'tokens-revoked') return ['access tokens revoked']
  const id = subscriptionOf(entry)
  const about = id === undefined ? '' : `#${id} `
  if (entry.kind === 'ended') return ['ended subscription', about, endReasons[entry.reason]]
  const { status, error, fault, body, target, answer } = entry
  const common = [about, status, error, fault, decoded(target), decoded(body), answer?.body]
  return entry.kind === 'request'
    ? [entry.operation, entry.method, ...common]
    : [entry.type, entry.username, entry.notificationId, ...common]
}

function textOfSubscription(subscription: SubscriptionView): string {
  const { subscriptionId, usernames, notificationTypes, callbackUrl } = subscription
  return [`#${subscriptionId}`, ...usernames, ...notificationTypes, callbackUrl, ''].join(' ').toLowerCase()
}

/** A form's text is searched as it was meant, not as it was encoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}
