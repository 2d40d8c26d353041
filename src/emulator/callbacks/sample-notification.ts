/** Notifications to send when nothing depends on what they say. */
import * as z from 'zod'
import { InvalidRequestError, type Issue } from '../../errors.js'
import {
  type DocumentedNotificationType,
  documentedNotificationTypes,
  type NotificationType,
  notificationTypes,
  typeThatBrings,
} from '../../notification-types.js'
import { formatIssues, validate } from '../../shared/issues.js'
import { nearestName } from '../../shared/nearest-name.js'
import { documentedType } from '../../webhooks/delivery/payload-schemas.js'
import { type EmulatedNotification, notificationSchema } from './emulated-notification.js'

/** The names alone: what the fields hold is checked when the notification is sent. */
const overridesSchema = z.strictObject(
  Object.fromEntries(Object.keys(notificationSchema.shape).map((name) => [name, z.unknown().optional()])),
)

/**
 * A valid notification, for `emulator.notify`: with the documented payload for `lowEnergyAgentOpened`, and with an
 * empty one for other types, whose payloads are not documented (docs/service.md, Resources). The user is `alice`.
 *
 * @param overrides - replace whole fields. A type that is not documented needs its `category` here, because nobody said
 * which subscribable type brings it
 * @throws `InvalidRequestError` for a type that is not documented, without a `category`, or for
 * `overrides` with a field that there is not
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
  validate(overridesSchema, overrides, refusal)
  const { username = 'alice', category = categoryOf(type) } = overrides
  const payload =
    type === documentedType ? { callId: 'call-1', username, bTime: 21_648, nTime: 35_912, idx: 0 } : {}
  return { payload, ...overrides, type, username, category }
}

function categoryOf(type: string): NotificationType {
  const category = typeThatBrings(type)
  if (category !== undefined) return category
  const categories = notificationTypes.join(', ')
  const nearest = nearestName(String(type), Object.values(documentedNotificationTypes).flat())
  const issue =
    nearest === undefined
      ? {
          path: ['category'],
          message: `is missing: it must be one of ${categories}, because "${type}" is no documented type`,
        }
      : {
          path: ['type'],
          message: `is not documented (did you mean ${nearest}?): one that is not needs a category, one of ${categories}`,
        }
  throw refusal([issue], formatIssues([issue]))
}

function refusal(issues: readonly Issue[], text: string): InvalidRequestError {
  return new InvalidRequestError(`There is no sample of this notification: ${text}.`, { issues })
}
