/**
 * The client against a real Keycloak, whose token endpoint is the service's (docs/service.md, Endpoints). What was found
 * here stands in docs/client.md, Keycloak.
 */
import {
  NotificationClient,
  type NotificationClientOptions,
  type NotificationError,
} from 'notification-subscriber'
import { Agent } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RealmClient, startKeycloak } from './keycloak-server.js'

/** Never called: these tests are about tokens. */
const baseUrl = 'https://notifications.example.com'
const realm = 'acme'
const plain: RealmClient = { clientId: 'plain', secret: 'c1ient-s3cret' }
const disabled: RealmClient = { clientId: 'disabled', secret: 'c1ient-s3cret', enabled: false }

const tenant: RealmClient = { clientId: 'tenant:app+1', secret: 'secret' }

/** What each encoding of a secret comes to. */
const secrets = {
  'letters-and-digits-1': { raw: 'a token', formUrlencoded: 'a token' },
  'colon:and/slash': { raw: 'a token', formUrlencoded: 'a token' },
  'blank and &=': { raw: 'a token', formUrlencoded: 'a token' },
  'plus+': { raw: '401 unauthorized_client', formUrlencoded: 'a token' },
  'percent%': { raw: '400 unauthorized_client', formUrlencoded: 'a token' },
  'percent%41 and two digits': { raw: '401 unauthorized_client', formUrlencoded: 'a token' },
}
const clientWith = (secret: string): RealmClient => ({ clientId: `secret-of-${secret.length}`, secret })

let keycloak: Awaited<ReturnType<typeof startKeycloak>>
let dispatcher: Agent

beforeAll(async () => {
  const clients = [plain, disabled, tenant, ...Object.keys(secrets).map(clientWith)]
  keycloak = await startKeycloak(realm, clients)
  dispatcher = new Agent({ connect: { ca: keycloak.ca } })
}, 600_000)
afterAll(async () => {
  await dispatcher?.destroy()
  await keycloak?.[Symbol.asyncDispose]()
})

type ClientCredentials = Extract<NotificationClientOptions['auth'], { clientId: unknown }>

function clientOf(
  { clientId, secret }: RealmClient,
  auth: Partial<ClientCredentials> = {},
  options: Partial<NotificationClientOptions> = {},
): NotificationClient {
  return new NotificationClient({
    baseUrl,
    auth: { authUrl: keycloak.authUrl, domain: realm, clientId, clientSecret: secret, ...auth },
    dispatcher,
    ...options,
  })
}

const outcomeOf = (client: NotificationClient) =>
  client.getAccessToken().then(
    () => 'a token',
    (error: NotificationError & { status?: number; error?: string }) => `${error.status} ${error.error}`,
  )

describe('Keycloak decodes Basic credentials as forms do (RFC 6749 section 2.3.1)', () => {
  test.each(Object.entries(secrets))('the secret %s', async (secret, { raw, formUrlencoded }) => {
    const client = clientWith(secret)
    expect(await outcomeOf(clientOf(client, { credentialsEncoding: 'raw' }))).toBe(raw)
    expect(await outcomeOf(clientOf(client, { credentialsEncoding: 'form-urlencoded' }))).toBe(formUrlencoded)
  })

  test('a client ID with a colon works in form encoding', async () => {
    expect(await outcomeOf(clientOf(tenant, { credentialsEncoding: 'form-urlencoded' }))).toBe('a token')
  })
})

test.each([
  ['a wrong secret', plain, { clientSecret: 'wrong' }, 401, 'unauthorized_client', /`clientSecret`/],
  ['an unknown client', { ...plain, clientId: 'nobody' }, {}, 401, 'invalid_client', /`clientId`/],
  ['a disabled client', disabled, {}, 401, 'invalid_client', /`clientId`/],
  ['an unknown realm', plain, { domain: 'nowhere' }, 404, 'Realm does not exist', /`authUrl` and `domain`/],
  ['an unknown scope', plain, { scope: 'no-such-scope' }, 400, 'invalid_scope', /`scope`/],
])(
  'what Keycloak refuses is reported with what to do: %s',
  async (_case, client, auth, status, error, advice) => {
    const rejection = clientOf(client, auth, { retry: false }).getAccessToken()
    await expect(rejection).rejects.toMatchObject({ code: 'TOKEN_REQUEST', status, error })
    await expect(rejection).rejects.toThrow(advice)
    const shown = await rejection.catch((thrown) => `${thrown.message} ${JSON.stringify(thrown)}`)
    expect(shown).not.toContain(client.secret)
  },
)

test('an optional scope is in the token if it was asked for, and only then', async () => {
  expect(scopesIn(await clientOf(plain).getAccessToken())).not.toContain('notifications')
  const token = await clientOf(plain, { scope: 'notifications' }).getAccessToken()
  expect(scopesIn(token)).toContain('notifications')
})

function scopesIn(token: string): string[] {
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  return claims.scope?.split(' ') ?? []
}
