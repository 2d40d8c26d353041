/** The callback that is measured (docs/service.md, Resources), and bodies on which every parser must agree. */

/** The secret that the sender and the receiver of callbacks share. */
export const callbackToken = 'token-of-the-subscription'

export interface DeliveryBody {
  readonly subscriptionId: unknown
  readonly notification: Readonly<Record<string, unknown>>
}

export function deliveryOf(
  subscriptionId: number,
  id = '6f1c3c1e-5a7c-4c3a-9f61-0b1f0f5b7a11',
): DeliveryBody {
  return {
    subscriptionId,
    notification: {
      id,
      time: 1_717_000_000_000,
      ver: '1.0',
      type: 'lowEnergyAgentOpened',
      payload: {
        callId: '9a1f0a52-1f6e-4a41-8b8b-9f1d2d3c4b5a',
        username: 'alice',
        bTime: 21_648,
        nTime: 35_912,
        idx: 0,
      },
    },
  }
}

export const delivery = JSON.stringify(deliveryOf(4711))

/** A delivery of a type whose payload is not documented. */
export const otherDelivery = JSON.stringify(
  withNotification({ type: 'cxScoreUpdated', payload: { callId: '9a1f0a52', score: 87, added: [1, 2, 3] } }),
)

const payload = deliveryOf(1).notification.payload as Record<string, unknown>

/** Bodies with the verdict of the interface document. */
export const verdicts: readonly (readonly [body: string, isDelivery: boolean])[] = [
  [delivery, true],
  [otherDelivery, true],
  [JSON.stringify({ ...deliveryOf(1), added: true }), true],
  [JSON.stringify(withNotification({ time: -1, added: null })), true],
  [JSON.stringify({ ...deliveryOf(1), subscriptionId: 2 ** 53 }), false],
  [JSON.stringify({ ...deliveryOf(1), subscriptionId: 'one' }), false],
  [JSON.stringify(withNotification({ time: 0.5 })), false],
  [JSON.stringify(withNotification({ ver: undefined })), false],
  [JSON.stringify(withNotification({ payload: { ...payload, idx: 0.5 } })), false],
  [JSON.stringify(withNotification({ type: 'cxScoreUpdated', payload: [] })), false],
  ['[]', false],
  ['{', false],
]

function withNotification(changes: Readonly<Record<string, unknown>>): DeliveryBody {
  const { subscriptionId, notification } = deliveryOf(1)
  return { subscriptionId, notification: { ...notification, ...changes } }
}
