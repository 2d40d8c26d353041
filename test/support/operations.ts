/** The calls that the fault suites make, each with what a healthy server answers. */
import type { NotificationClient } from 'notification-subscriber'
import { secrets } from './secrets.js'

export interface Operation {
  readonly name: 'token' | 'create' | 'recreate' | 'unsubscribe' | 'update'
  /** Of a healthy answer. */
  readonly status: string
  readonly body: string
  readonly result: unknown
  call(client: NotificationClient, timeoutMs: number): Promise<unknown>
}

/** Long enough that a request comes in several TLS records: its middle is a place where it can break. */
export const padding = 'x'.repeat(50_000)

/** As long as parameters may be. */
const longParameter = 'x'.repeat(8_000)

const subscription = {
  notificationTypes: ['behavioral'],
  usernames: ['alice', padding],
  callbackUrl: 'https://app.example.com/notifications',
  parameters: { token: secrets.parameter, longParameter },
  headers: { UserData: secrets.header },
} as const

const tokenAnswer = { access_token: secrets.accessToken, token_type: 'Bearer', expires_in: 3600 }

export const operations: readonly Operation[] = [
  {
    name: 'token',
    status: '200 OK',
    body: JSON.stringify(tokenAnswer),
    result: secrets.accessToken,
    call: (client, timeoutMs) => client.getAccessToken({ timeoutMs }),
  },
  {
    name: 'create',
    status: '201 Created',
    body: '{"subscription_id":71234}',
    result: { subscriptionId: 71_234 },
    call: (client, timeoutMs) => client.createSubscription(subscription, { timeoutMs }),
  },
  {
    name: 'recreate',
    status: '201 Created',
    body: '{"subscription_id":71234}',
    result: { subscriptionId: 71_234 },
    call: (client, timeoutMs) =>
      client.createSubscription({ ...subscription, recreateIfExists: true }, { timeoutMs }),
  },
  {
    name: 'unsubscribe',
    status: '200 OK',
    body: '{"ended":"71234"}',
    result: undefined,
    call: (client, timeoutMs) => client.unsubscribe(71_234, { timeoutMs }),
  },
  {
    name: 'update',
    status: '200 OK',
    body: '{"updated":"71234"}',
    result: undefined,
    call: (client, timeoutMs) => {
      const { parameters, headers } = subscription
      return client.updateSubscriptionParameters(71_234, { parameters, headers }, { timeoutMs })
    },
  },
]
