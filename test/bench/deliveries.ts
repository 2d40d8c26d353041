/** The callback that is measured (docs/service.md, Resources). */

/** The secret that the sender and the receiver of callbacks share. */
export const callbackToken = 'token-of-the-subscription'

interface DeliveryBody {
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
