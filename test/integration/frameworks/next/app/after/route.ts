/** A route whose handler outlives the answer, with what Next.js has for that. */
import { setTimeout } from 'node:timers/promises'
import { after } from 'next/server'
import { DeliveryReceiver, toWebHandler } from 'notification-subscriber/webhooks'

const receiver = new DeliveryReceiver({
  secrets: () => ({ token: process.env.CALLBACK_TOKEN ?? '' }),
  ackTimeoutMs: 0,
}).onAny(async ({ type }) => {
  await setTimeout(50)
  console.log(`Handled ${type} after the answer`)
})

export const POST = toWebHandler(receiver, { waitUntil: after })
