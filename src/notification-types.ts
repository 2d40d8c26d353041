/**
 * The types to subscribe to, and the documented delivered types. A new documented type and its payload begin here;
 * `webhooks/documented-payloads.ts` exports the payload.
 */
import * as z from 'zod'

/** The types that a subscription can ask for (docs/service.md, Notification types). */
export const notificationTypes = ['behavioral', 'call-score', 'conversation-ai'] as const

/** A type that a subscription can ask for (docs/service.md, Notification types). */
export type NotificationType = (typeof notificationTypes)[number]

/**
 * The documented values † of `notification.type`, by the subscribable type that brings them (docs/service.md, Notification
 * types). The list may be incomplete: another value is normal and never an error.
 */
export const documentedNotificationTypes = {
  /** How a call goes: each with `Opened` when it begins and `Closed` when it ends. */
  behavioral: [
    'slowToRespondAgentOpened',
    'slowToRespondAgentClosed',
    'silenceHighOpened',
    'silenceHighClosed',
    'speakingRateLowAgentOpened',
    'speakingRateLowAgentClosed',
    'empathyCueOpened',
    'empathyCueClosed',
    'lowEnergyAgentOpened',
    'lowEnergyAgentClosed',
    'continuousSpeakingAgentOpened',
    'continuousSpeakingAgentClosed',
    'extendedOverlapOpened',
    'extendedOverlapClosed',
    'speakingRateHighAgentOpened',
    'speakingRateHighAgentClosed',
    'positiveInteractionOpened',
    'positiveInteractionClosed',
  ],
  'call-score': ['cxScoreUpdated'],
  /** Topics of conversations. The source of this list breaks off here: there may be more. */
  'conversation-ai': ['topicKeywordEvent', 'topicKeywordAbsentEvent'],
} as const satisfies Record<NotificationType, readonly string[]>

/** A value of `notification.type` in {@link documentedNotificationTypes}. */
export type DocumentedNotificationType = (typeof documentedNotificationTypes)[NotificationType][number]

/** The test delivery of `notification-subscriber check`, of no subscription: a receiver accepts it and calls no handler. */
export const testDelivery = { subscriptionId: 0, type: 'configurationCheck' } as const

/** Any integer. Not `z.int()`, which refuses integers beyond 2^53, which the service may send. */
export const integer = z.number().refine(Number.isInteger, 'must be an integer').meta({ type: 'integer' })

/** The documented payloads, each with a sample (docs/service.md, Resources). webhooks/documented-payloads.ts exports each. */
export const documentedPayloads = {
  lowEnergyAgentOpened: {
    schema: z.looseObject({
      /** The call. */
      callId: z.string().describe('The call.'),
      /** The user (agent) that the notification is about. */
      username: z.string().describe('The user (agent) that the notification is about.'),
      /** An integer of any sign; no unit is documented. */
      bTime: integer.describe('An integer of any sign; no unit is documented.'),
      /** An integer of any sign; no unit is documented. */
      nTime: integer.describe('An integer of any sign; no unit is documented.'),
      /** An integer of any sign. */
      idx: integer.describe('An integer of any sign.'),
    }),
    sample: { callId: 'call-1', username: 'alice', bTime: 21_648, nTime: 35_912, idx: 0 },
  },
} as const

/** A documented value of `notification.type` whose payload is documented, too. */
export type TypeWithDocumentedPayload = keyof typeof documentedPayloads

export type DocumentedShape<Type extends TypeWithDocumentedPayload> =
  (typeof documentedPayloads)[Type]['schema']['shape']

/** Fields that a schema does not name are kept, but have no type: with an index signature a misspelt name would compile. */
export type DocumentedPayload<Type extends TypeWithDocumentedPayload> = z.output<
  z.ZodObject<DocumentedShape<Type>, z.core.$strip>
>

/** The schema and a sample of the payload of a type, if they are documented. */
export function documentedPayloadOf(
  type: string,
): (typeof documentedPayloads)[TypeWithDocumentedPayload] | undefined {
  // A scan, because a type may be called `__proto__`.
  return Object.entries(documentedPayloads).find(([name]) => name === type)?.[1]
}

/** The type to subscribe to for a documented value of `notification.type`. */
export function typeThatBrings(delivered: unknown): NotificationType | undefined {
  return notificationTypes.find((type) => {
    const brought: readonly unknown[] = documentedNotificationTypes[type]
    return brought.includes(delivered)
  })
}

/** What is wrong with a delivered type where a type to subscribe to is expected: the rest of a sentence, or `undefined`. */
export function deliveredTypeProblem(value: unknown): string | undefined {
  const type = typeThatBrings(value)
  return type && `is the type of a delivered notification: to get it, subscribe to \`${type}\``
}
