/** The callback that is measured (docs/service.md, Resources). */
import { lowEnergyDelivery } from '../webhooks/deliveries.js'

/** The secret that the sender and the receiver of callbacks share. */
export const callbackToken = 'token-of-the-subscription'

export const delivery = JSON.stringify(lowEnergyDelivery())
