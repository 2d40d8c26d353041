/** The filter of the page. It finds what a person can read there: never a part of a secret, of an id or of a number. */
import type { TimeLineEvent } from '../activity.js'
import type { SubscriptionRecord } from '../service/subscription-store.js'
import { endReasons } from '../words.js'
import { reasonOf, subscriptionIdOf, targetOf, titleOf } from './rows.js'
import { Secrets } from './secrets.js'

const masked = new Secrets(false)

/** The items in which every word occurs. `#3` is subscription 3, and `401` no part of a port. */
export function matching<Item>(
  items: readonly Item[],
  filter: string,
  textOf: (item: Item) => readonly unknown[],
): readonly Item[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return items
  return items.filter((item) => {
    const text = textOf(item).join('\n').toLowerCase()
    return words.every((word) =>
      /^#?\d+$/.test(word) ? new RegExp(`(?<!\\d)${word}(?!\\d)`).test(text) : text.includes(word),
    )
  })
}

export function eventText(event: TimeLineEvent, filter: string): readonly unknown[] {
  const about = [titleOf(event), `#${subscriptionIdOf(event)}`]
  if (event.kind === 'ended') return [...about, endReasons[event.reason]]
  const { method, address } = targetOf(event)
  const { status, error, headers, body, answer } = event.request
  const outcome = [status, error, reasonOf(event), masked.answer(answer?.body ?? '')]
  const all = [...about, ...outcome, method, masked.url(address)]
  if (event.kind === 'request') return all.concat(Object.entries(masked.fields(headers, body) ?? {}).flat())
  const { notificationId, username } = event.request
  // A random id is found as a whole only, as a log has it: a few letters of it may be those of a name.
  const id = filter.includes(notificationId) ? notificationId : ''
  return [...all, username, body.replace(notificationId, ''), id]
}

export function subscriptionText(subscription: SubscriptionRecord): readonly unknown[] {
  const { subscriptionId, usernames, notificationTypes, callbackUrl } = subscription
  return [`#${subscriptionId}`, ...usernames, ...notificationTypes, masked.url(callbackUrl)]
}
