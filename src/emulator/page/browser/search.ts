/** Finds entries and subscriptions by what is typed into a filter. */
import { decodeFormComponent } from '../../../shared/text.js'
import { endReasons } from '../../words.js'
import type { EntryView, SubscriptionView } from '../views.js'
import { subscriptionOf } from './format.js'

/** What a list shows: the items of a kind, if every word of the text occurs in them. */
export interface Filter<Kind extends string> {
  readonly kind: Kind
  readonly text: string
}

export type EntryFilter = Filter<'all' | 'request' | 'callback' | 'failure'>

const haystacks = new WeakMap<object, string>()

/** The items in which every word of a text occurs; `#3` is subscription 3 and not 30. */
export function withWords<Item extends object>(
  items: readonly Item[],
  text: string,
  wordsOf: (item: Item) => readonly unknown[],
): readonly Item[] {
  const needles = text.toLowerCase().split(/\s+/).filter(Boolean)
  if (needles.length === 0) return items
  return items.filter((item) => {
    const haystack = haystacks.get(item) ?? `${wordsOf(item).join(' ').toLowerCase()} `
    haystacks.set(item, haystack)
    return needles.every((word) => haystack.includes(/^#\d+$/.test(word) ? `${word} ` : word))
  })
}

export function wordsOfEntry(entry: EntryView): readonly unknown[] {
  if (entry.kind === 'tokens-revoked') return ['access tokens revoked']
  const id = subscriptionOf(entry)
  const about = id === undefined ? '' : `#${id}`
  if (entry.kind === 'ended') return ['ended subscription', about, endReasons[entry.reason]]
  const { status, error, fault, body, target, answer } = entry
  // A form's text is searched as it was meant, not as it was encoded.
  const [path, text] = [target, body].map((each) => decodeFormComponent(each) ?? each)
  const common = [about, status, error, fault, path, text, answer?.body]
  return entry.kind === 'request'
    ? [entry.operation, entry.method, ...common]
    : [entry.type, entry.username, entry.notificationId, ...common]
}

export function wordsOfSubscription(subscription: SubscriptionView): readonly unknown[] {
  const { subscriptionId, usernames, notificationTypes, callbackUrl } = subscription
  return [`#${subscriptionId}`, ...usernames, ...notificationTypes, callbackUrl]
}
