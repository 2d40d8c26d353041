/** The notifications that a test sends, and the body of their callbacks (docs/service.md, Resources). */
import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import {
  type DocumentedNotificationType,
  deliveredTypeProblem,
  documentedNotificationTypes,
  type NotificationType,
  notificationTypes,
  typeThatBrings,
} from '../notification-types.js'
import { nearestName } from '../shared/mistakes.js'
import { invalidRequest, validate } from '../shared/validation.js'
import { samplePayload } from '../webhooks/sample.js'

/** The argument of `Emulator.notify`. */
export interface EmulatedNotification {
  /** The delivered `notification.type`, e.g. `lowEnergyAgentOpened`. Editors suggest the documented types. */
  readonly type: DocumentedNotificationType | (string & {})
  /** The user (agent) that the notification is about. */
  readonly username: string
  /**
   * The type that its subscriptions have. Default: the type that brings `type` (docs/service.md, Notification
   * types); a type that is not documented needs it.
   */
  readonly category?: NotificationType | undefined
  /**
   * The whole payload: an object that JSON can hold, also one that a receiver refuses. Default: the
   * documented payload, with this `username` if it has one; an empty object if none is documented
   * (docs/service.md, Resources).
   */
  readonly payload?: object | undefined
  /** Unique identifier of the notification. Default: a new random UUID. */
  readonly id?: string | undefined
  /** When it happened, in milliseconds since 1970 (docs/service.md, Resources). Default: now. */
  readonly time?: number | undefined
  /** Version of the notification object format (docs/service.md, Resources). Default: `'1.0'`. */
  readonly ver?: string | undefined
}

export interface OutgoingNotification {
  readonly id: string
  readonly type: string
  readonly username: string
  readonly category: NotificationType
  /** What stands in the body of every callback. */
  readonly notificationJson: string
}

/** Fills in what was left out. @throws `InvalidRequestError` for a notification that the service could not deliver */
export function outgoingNotification(notification: unknown): OutgoingNotification {
  const invalid = invalidRequest('This notification cannot be delivered')
  const valid = validate(notificationSchema, notification, invalid)
  const { type, username, payload = payloadAbout(type, username), id, time, ver } = valid
  const { category = typeThatBrings(type) } = valid
  if (category === undefined) {
    const nearest = nearestName(type, Object.values(documentedNotificationTypes).flat())
    const message = `is not documented (the most similar one is ${nearest}): such a type needs a category, one of ${notificationTypes.join(', ')}`
    throw invalid([{ path: ['type'], message }])
  }
  // Written now: a change that the caller makes to the payload later must not reach a callback that waits in the queue.
  const notificationJson = JSON.stringify({ id, time, ver, type, payload })
  return { id, type, username, category, notificationJson }
}

const notificationSchema = z.strictObject({
  type: z.string().min(1),
  username: z.string().min(1),
  category: z.enum(notificationTypes, { error: ({ input }) => deliveredTypeProblem(input) }).optional(),
  payload: z.record(z.string(), z.unknown()).optional(),
  id: z.string().min(1).default(randomUUID),
  time: z.int().default(Date.now),
  ver: z.string().min(1).default('1.0'),
})

function payloadAbout(type: string, username: string): object {
  const payload = samplePayload(type)
  return 'username' in payload ? { ...payload, username } : payload
}
