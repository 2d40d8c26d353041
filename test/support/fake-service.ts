/** The two servers behind a `fetch` that never leaves the process: each call is recorded, each answer scripted. */
import { type FetchLike, NotificationClient, type NotificationClientOptions } from 'notification-subscriber'
import { tokenPath } from './routes.js'

export const baseUrl = 'https://notifications.example.com'
export const credentials = {
  authUrl: 'https://auth.acme.example.com',
  domain: 'acme',
  clientId: 'subscriber',
  clientSecret: 'c1ient-s3cret',
}
export const tokenUrl = credentials.authUrl + tokenPath()

export const subscription = {
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: 'https://app.example.com/notifications',
} as const

export interface RecordedCall {
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly body: string
  readonly signal: AbortSignal
}

type Answer = (call: RecordedCall, count: number) => Response | Promise<Response>

export interface FakeService {
  readonly fetch: FetchLike
  readonly tokenRequests: RecordedCall[]
  readonly calls: RecordedCall[]
  /** Answers token requests; `count` is 1 for the first. */
  onToken: Answer
  onCall: Answer
  client(options?: Partial<NotificationClientOptions>): NotificationClient
}

export function fakeService(): FakeService {
  const service: FakeService = {
    tokenRequests: [],
    calls: [],
    onToken: (_call, count) => tokenAnswer(`token-${count}`),
    onCall: (_call, count) => Response.json({ subscription_id: count }, { status: 201 }),
    async fetch(url, init) {
      init.signal.throwIfAborted()
      const { body = '', method, signal } = init
      const call = { method, url, headers: new Headers(init.headers), body, signal }
      if (url === tokenUrl) {
        service.tokenRequests.push(call)
        return service.onToken(call, service.tokenRequests.length)
      }
      service.calls.push(call)
      return service.onCall(call, service.calls.length)
    },
    client: (options) =>
      new NotificationClient({ baseUrl, auth: credentials, fetch: service.fetch, ...options }),
  }
  return service
}

/** Answers 401 to calls with this token, and creates a subscription for all others. */
export const rejecting =
  (token: string): Answer =>
  ({ headers }, count) =>
    headers.get('authorization') === `Bearer ${token}`
      ? new Response('', { status: 401 })
      : Response.json({ subscription_id: count }, { status: 201 })

export function tokenAnswer(accessToken: string, expiresInSeconds = 3600): Response {
  return Response.json({ access_token: accessToken, token_type: 'Bearer', expires_in: expiresInSeconds })
}
