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
 * A valid notification of a documented type, for `emulator.notify`: with the documented payload for
 * `lowEnergyAgentOpened`, and with an empty one for the others, whose payloads are not documented
 * (docs/service.md, Resources). The user is `alice`. `overrides` replace whole fields.
 *
 * @example
 * ```ts
 * await emulator.notify(sampleNotification('lowEnergyAgentOpened', { username: 'bob' }))
 * ```
 */
export function sampleNotification(
  type: DocumentedNotificationType,
  overrides?: Partial<EmulatedNotification>,
): EmulatedNotification
/**
 * The same for any other type: of those, nobody documented which `category` brings them.
 *
 * @throws `InvalidRequestError` if the type is not documented and `overrides` have no `category`.
 */
export function sampleNotification(
  type: string,
  overrides: Partial<EmulatedNotification> & Pick<EmulatedNotification, 'category'>,
): EmulatedNotification
export function sampleNotification(
  type: string,
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
