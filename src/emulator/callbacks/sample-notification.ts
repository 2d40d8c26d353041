/** Notifications to send when nothing depends on what they say. */
import { InvalidRequestError } from '../../errors.js'
import {
  type DocumentedNotificationType,
  documentedNotificationTypes,
  type NotificationType,
  notificationTypes,
} from '../../notification-types.js'
import { documentedType } from '../../webhooks/delivery/payload-schemas.js'
import type { EmulatedNotification } from './emulated-notification.js'

/**
 * A valid notification, for `emulator.notify`: with the documented payload for `lowEnergyAgentOpened`, and with an
 * empty one for the others, whose payloads are not documented (docs/service.md, Resources). The user is `alice`.
 *
 * @param overrides - replace whole fields. A type that is not documented needs its `category` here: of those nobody
 * said which subscribable type brings them.
 * @throws `InvalidRequestError` without that.
 *
 * @example
 * ```ts
 * await emulator.notify(sampleNotification('lowEnergyAgentOpened', { username: 'bob' }))
 * ```
 */
export function sampleNotification(
  // An editor suggests the documented types, and takes any other.
  type: DocumentedNotificationType | (string & {}),
  overrides: Partial<EmulatedNotification> = {},
): EmulatedNotification {
  const { username = 'alice', category = categoryOf(type) } = overrides
  const payload =
    type === documentedType ? { callId: 'call-1', username, bTime: 21_648, nTime: 35_912, idx: 0 } : {}
  return { payload, ...overrides, type, username, category }
}

function categoryOf(type: string): NotificationType {
  const category = notificationTypes.find((each) => {
    const delivered: readonly string[] = documentedNotificationTypes[each]
    return delivered.includes(type)
  })
  if (category !== undefined) return category
  const message = `is needed, because "${type}" is no documented type: ${notificationTypes.join(', ')}`
  throw new InvalidRequestError(`There is no sample of this notification: category ${message}.`, {
    issues: [{ path: ['category'], message }],
  })
}
