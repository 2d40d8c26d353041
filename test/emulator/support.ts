/** What the emulator's tests share: plain HTTPS requests to it, and a receiver for its callbacks. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Emulator } from 'notification-subscriber/emulator'
import { endpoints } from '../../src/shared/routes.js'
import { serving } from '../support/listen.js'
import { createPath, routeOf, tokenPath } from '../support/routes.js'

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

export interface Subscription {
  types?: string
  users?: string
  url?: string
  recreate?: string
  fields?: Record<string, string>
  headers?: Record<string, string>
}

export const form = 'application/x-www-form-urlencoded'

export function basic(id: string, secret: string): string {
  return `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`
}

export function apiAuthorization(emulator: Emulator): string {
  return basic(emulator.username, emulator.password)
}

/** A request over real TLS, sent exactly as it is given. */
export async function send(
  emulator: Emulator,
  method: string,
  path: string,
  { headers = {}, body }: { headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  const { dispatcher } = emulator.clientOptions
  const answer = await dispatcher.request({
    origin: emulator.baseUrl,
    path,
    method: method as 'POST',
    headers,
    body: body ?? null,
  })
  return { status: answer.statusCode, headers: answer.headers, body: await answer.body.text() }
}

export function requestToken(
  emulator: Emulator,
  {
    authorization = basic(emulator.clientId, emulator.clientSecret),
    body = 'grant_type=client_credentials',
    contentType = form,
  }: { authorization?: string | null; body?: string; contentType?: string } = {},
): Promise<Answer> {
  return send(emulator, 'POST', tokenPath(emulator.domain), {
    headers: { 'content-type': contentType, ...(authorization === null ? {} : { authorization }) },
    body,
  })
}

export async function accessToken(emulator: Emulator): Promise<string> {
  return JSON.parse((await requestToken(emulator)).body).access_token
}

export function create(emulator: Emulator, subscription: Subscription = {}): Promise<Answer> {
  const { types = 'behavioral', users = 'alice', url = 'https://app.example.com/', recreate } = subscription
  const fields = new URLSearchParams({
    notification_type: types,
    username: users,
    callback_url: url,
    ...(recreate === undefined ? {} : { recreateIfExists: recreate }),
    ...subscription.fields,
  })
  return send(emulator, 'POST', createPath, {
    headers: { authorization: apiAuthorization(emulator), 'content-type': form, ...subscription.headers },
    body: fields.toString(),
  })
}

/** Creates a subscription that must be accepted, and returns its id. */
export async function created(emulator: Emulator, subscription: Subscription = {}): Promise<number> {
  const { status, body } = await create(emulator, subscription)
  if (status !== endpoints.create.success) throw new Error(`create was answered ${status}: ${body}`)
  return JSON.parse(body).subscription_id
}

export function update(
  emulator: Emulator,
  id: number,
  body: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const { method, path } = routeOf('update', id)
  return send(emulator, method, path, {
    headers: { authorization: apiAuthorization(emulator), 'content-type': form, ...headers },
    body,
  })
}

export function unsubscribe(emulator: Emulator, id: number): Promise<Answer> {
  const { method, path } = routeOf('unsubscribe', id)
  return send(emulator, method, path, {
    headers: { authorization: apiAuthorization(emulator) },
  })
}

export interface ReceivedCallback {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: { subscriptionId: number; notification: { id: string; time: number; ver: string } }
  text: string
}

/** How the receiver treats a callback: a status to answer with, no answer at all, a part of one, or a broken connection. */
export type Reaction =
  | number
  | 'hang'
  | 'break'
  | 'cut'
  | 'endless'
  | { redirectTo: string }
  | { status: number; body: string; headers?: Record<string, string> }

/** A receiver of callbacks; it answers 204 unless `reactions` has something else for the next ones. */
export class Receiver {
  readonly url: string
  readonly callbacks: ReceivedCallback[] = []
  readonly reactions: Reaction[] = []
  readonly #close: () => Promise<void>

  private constructor(server: ReturnType<typeof createServer>, origin: string, close: () => Promise<void>) {
    this.#close = close
    this.url = `${origin}/callbacks`
    server.on('request', async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      const { method = '', url: path = '', headers } = request
      this.callbacks.push({ method, path, headers, body: JSON.parse(body), text: body })
      const reaction = this.reactions.shift() ?? 204
      if (reaction === 'break') request.socket.destroy()
      else if (reaction === 'cut') {
        response.writeHead(200, { 'content-length': 10 }).write('abc', () => request.socket.destroy())
      } else if (reaction === 'endless') {
        response.writeHead(200)
        const writing = setInterval(() => response.write('more'), 10)
        response.once('close', () => clearInterval(writing))
      } else if (typeof reaction === 'object') {
        if ('body' in reaction) response.writeHead(reaction.status, reaction.headers).end(reaction.body)
        else response.writeHead(307, { location: reaction.redirectTo }).end()
      } else if (reaction !== 'hang') response.writeHead(reaction).end()
    })
  }

  static async start(emulator: Emulator): Promise<Receiver> {
    return Receiver.#listen(createTlsServer(emulator.tls), 'https')
  }

  static async startInsecure(): Promise<Receiver> {
    return Receiver.#listen(createServer(), 'http')
  }

  static async #listen(server: ReturnType<typeof createServer>, protocol: string): Promise<Receiver> {
    const { port, [Symbol.asyncDispose]: close } = await serving(server)
    return new Receiver(server, `${protocol}://localhost:${port}`, close)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#close()
  }
}

export const lowEnergy = {
  type: 'lowEnergyAgentOpened',
  category: 'behavioral',
  username: 'alice',
  payload: { callId: 'c1', username: 'alice', bTime: 21648, nTime: 35912, idx: 0 },
} as const
