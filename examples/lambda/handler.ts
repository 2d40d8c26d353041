/** Callbacks in an AWS Lambda function that has a function URL, or stands behind an HTTP API. */
import { DeliveryReceiver } from 'notification-subscriber/webhooks'

const { CALLBACK_TOKEN = '' } = process.env

export const receiver = new DeliveryReceiver({
  secrets: { token: CALLBACK_TOKEN },
  onInvalid: (error) => console.error(error.message),
  onError: (error, { id }) => console.error(`Notification ${id} was not handled:`, error),
}).on('lowEnergyAgentOpened', ({ payload }, { subscriptionId }) => {
  // Lambda freezes what still runs after the answer: work that takes longer than `ackTimeoutMs` needs a queue.
  console.log(`Subscription ${subscriptionId}: ${payload.username} sounds tired on ${payload.callId}`)
})

/** The parts of an event in payload format 2.0 that the handler uses. */
export interface FunctionUrlEvent {
  readonly requestContext: { readonly http: { readonly method: string } }
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body?: string | undefined
  readonly isBase64Encoded: boolean
}

export interface FunctionUrlResult {
  readonly statusCode: number
  readonly headers: Record<string, string>
  readonly body: string
}

export async function handler(event: FunctionUrlEvent): Promise<FunctionUrlResult> {
  const body = event.body ?? ''
  const { status, headers } = await receiver.handle({
    method: event.requestContext.http.method,
    headers: event.headers,
    body: event.isBase64Encoded ? Buffer.from(body, 'base64') : body,
  })
  return { statusCode: status, headers, body: '' }
}
