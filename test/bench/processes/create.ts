/** One way to create subscriptions, measured alone. */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import axios from 'axios'
import got from 'got'
import { Agent, Pool, setGlobalDispatcher } from 'undici'
import { NotificationClient, type NotificationClientOptions } from '../../../dist/index.js'
import { type Cost, callFor, costOf } from '../measure.js'
import { serve } from '../processes.js'

const [, , name, origin = '', connections = ''] = process.argv
const maxConnections = Number(connections)
const url = `${origin}/api/subscriptions`

const input = {
  notificationTypes: ['behavioral', 'call-score'],
  usernames: ['alice', 'bob'],
  callbackUrl: 'https://app.example.com/notifications',
  parameters: { token: 'token-of-the-subscription' },
} as const

const form = {
  notification_type: 'behavioral,call-score',
  username: 'alice,bob',
  callback_url: 'https://app.example.com/notifications',
  token: 'token-of-the-subscription',
}
/** In the order of the client: pool.request sends the very same bytes. */
const headers = {
  accept: 'application/json',
  'content-type': 'application/x-www-form-urlencoded',
  authorization: `Bearer ${'a'.repeat(800)}`,
}

const keepAlive = { keepAlive: true, maxSockets: maxConnections }

type Create = () => Promise<unknown>

const creators = {
  ours: (): Create => ourCreate({}),
  'ours on fetch': () => {
    // Node's own fetch goes through the dispatcher that undici's documentation sets like this.
    setGlobalDispatcher(new Agent({ connections: maxConnections }))
    return ourCreate({ fetch: globalThis.fetch })
  },
  'undici pool.request': () => {
    const pool = new Pool(origin, { connections: maxConnections })
    const body = new URLSearchParams(form).toString()
    return async () => {
      const answer = await pool.request({ path: '/api/subscriptions', method: 'POST', headers, body })
      return idIn(answer.statusCode, await answer.body.json())
    }
  },
  got: () => {
    const agent = { http: new HttpAgent(keepAlive), https: new HttpsAgent(keepAlive) }
    return async () => {
      const { statusCode, body } = await got.post(url, { form, headers, agent, responseType: 'json' })
      return idIn(statusCode, body)
    }
  },
  axios: () => {
    const agents = { httpAgent: new HttpAgent(keepAlive), httpsAgent: new HttpsAgent(keepAlive) }
    return async () => {
      const { status, data } = await axios.post(url, new URLSearchParams(form), { headers, ...agents })
      return idIn(status, data)
    }
  },
} as const satisfies Record<string, () => Create>

function ourCreate(options: Partial<Pick<NotificationClientOptions, 'fetch'>>): Create {
  const client = new NotificationClient({
    baseUrl: origin,
    auth: { authUrl: origin, domain: 'acme', clientId: 'client', clientSecret: 'client-secret' },
    ...options,
  })
  return async () => (await client.createSubscription(input)).subscriptionId
}

function idIn(status: number, body: unknown): unknown {
  if (status !== 201) throw new Error(`answered ${status}`)
  return (body as { subscription_id: unknown }).subscription_id
}

const create = creators[name as keyof typeof creators]()
const check = async () => {
  const id = await create()
  if (!Number.isInteger(id)) throw new Error(`${id} is no id of a subscription`)
}
// Until it is compiled: the slowest makes two thousand calls a second.
await callFor(2_000, 64, check)

const functions = {
  run: ({ runMs, concurrency }: { runMs: number; concurrency: number }): Promise<Cost> =>
    costOf(() => callFor(runMs, concurrency, check)),
}
export type CreateFunctions = typeof functions
serve(functions)
