/** Finds entries and subscriptions by what is typed into a filter. */
import type { EntryView, SubscriptionView } from '../protocol.js'
import { isFailure, reasonInWords } from './format.js'

export type EntryKind = 'all' | 'request' | 'callback' | 'failure'

export interface EntryFilter {
  readonly kind: EntryKind
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

export function filterSubscriptions(
  subscriptions: readonly SubscriptionView[],
  text: string,
): readonly SubscriptionView[] {
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
const subscriptionTexts = new WeakMap<SubscriptionView, string>()

function textOfEntry(entry: EntryView): string {
  return remember(entryTexts, entry, () => {
    if (entry.kind === 'note') {
      return entry.note === 'ended'
        ? `ended subscription #${entry.subscriptionId} ${reasonInWords(entry.reason)}`
        : 'access tokens revoked'
    }
    const { status, error, fault, body } = entry
    const common = [status, error, fault, decoded(body)]
    return entry.kind === 'request'
      ? [entry.operation, entry.method, decoded(entry.path), pathId(entry.path), ...common].join(' ')
      : [`#${entry.subscriptionId}`, entry.type, entry.username, entry.callbackUrl, ...common].join(' ')
  })
}

function textOfSubscription(subscription: SubscriptionView): string {
  return remember(subscriptionTexts, subscription, () => {
    const { subscriptionId, usernames, notificationTypes, callbackUrl, ended } = subscription
    const reason = ended === undefined ? '' : reasonInWords(ended.reason)
    return [`#${subscriptionId}`, ...usernames, ...notificationTypes, callbackUrl, reason].join(' ')
  })
}

function remember<Key extends object>(texts: WeakMap<Key, string>, key: Key, make: () => string): string {
  let text = texts.get(key)
  if (text === undefined) {
    // The space at the end lets `#3 ` be found there, too.
    text = `${make().toLowerCase()} `
    texts.set(key, text)
  }
  return text
}

function pathId(path: string): string {
  const [, id] = /^\/api\/subscriptions\/(\d+)$/.exec(path) ?? []
  return id === undefined ? '' : `#${id}`
}

/** A form's text is searched as it was meant, not as it was encoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}
