/** What a test asks the emulator to deliver, and the body that goes out for it (docs/service.md, Resources). */
import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import { InvalidRequestError } from '../../errors.js'
import { deliveredTypeProblem, type NotificationType, notificationTypes } from '../../notification-types.js'
import { validate } from '../../shared/issues.js'

/** Something that happened to a user. */
export interface EmulatedNotification {
  /** The delivered `notification.type`, e.g. `lowEnergyAgentOpened`. */
  readonly type: string
  /** The subscribable type that brings it. Named here, because of undocumented types nobody said which that is. */
  readonly category: NotificationType
  /** The user (agent) that the notification is about. */
  readonly username: string
  /** What the delivery carries: an object that JSON can hold. */
  readonly payload: object
  /** Unique identifier of the notification. Default: a new random UUID. */
  readonly id?: string | undefined
  /** When it happened, in milliseconds since 1970 (docs/service.md, Resources). Default: now. */
  readonly time?: number | undefined
  /** Version of the notification object format (docs/service.md, Resources). Default: `'1.0'`. */
  readonly ver?: string | undefined
}

/** A notification that the service could deliver. */
export const notificationSchema = z.strictObject({
  type: z.string().min(1),
  category: z.enum(notificationTypes, { error: ({ input }) => deliveredTypeProblem(input) }),
  username: z.string().min(1),
  payload: z.record(z.string(), z.unknown()),
  id: z.string().min(1).optional(),
  time: z.int().optional(),
  ver: z.string().min(1).optional(),
})

/**
 * Makes the function that writes the body for a subscription.
 *
 * @throws `InvalidRequestError` for a notification that the service could not deliver
 */
export function deliveryBodyWriter(notification: EmulatedNotification): (subscriptionId: number) => string {
  validate(
    notificationSchema,
    notification,
    (issues, text) => new InvalidRequestError(`This notification cannot be delivered: ${text}.`, { issues }),
  )
  const { id = randomUUID(), time = Date.now(), ver = '1.0', type, payload } = notification
  // Written now: what the caller does to the payload later must not reach a callback that waits for its turn.
  const notificationJson = JSON.stringify({ id, time, ver, type, payload })
  return (subscriptionId) => `{"subscriptionId":${subscriptionId},"notification":${notificationJson}}`
}
