/** No secret is ever shown, not even where the server sends back the request, in whatever spelling. */
import { NotificationClient, NotificationError } from 'notification-subscriber'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { type Operation, operations } from '../support/operations.js'
import { recordingLogger } from '../support/recording-logger.js'
import { type Script, ScriptedServer } from '../support/scripted-server.js'
import { auth, expectNoSecretIn, secrets, spellings } from '../support/secrets.js'

const { tls } = createLoopbackCertificate()

beforeAll(() => void vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0'))
afterAll(() => void vi.unstubAllEnvs())

/** The request as it came, and every secret in it, each written in every way. */
function echoOf(request: string): string {
  const inRequest = Object.values(secrets).filter((secret) =>
    spellings(secret).some((spelling) => request.includes(spelling)),
  )
  expect(inRequest).not.toEqual([])
  return [request, ...inRequest.flatMap(spellings)].join('\n')
}

const message = (status: string, body: string, headers: readonly string[] = []) =>
  [`HTTP/1.1 ${status}`, ...headers, `content-length: ${Buffer.byteLength(body)}`, '', body].join('\r\n')

const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ')

const answering =
  (answer: (echo: string) => string): Script =>
  async (connection) => {
    await connection.write(answer(echoOf(await connection.request())))
  }

const statuses = [200, 201, 204, 302, 400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504, 511]

/** What a server does with the request that it got. */
const echoes: Record<string, Script> = {
  ...Object.fromEntries(
    statuses.map((status) => [
      `${status} with the request in the body`,
      answering((echo) => message(`${status} X`, status === 204 ? '' : echo)),
    ]),
  ),
  'an OAuth error with the request in its description': answering((echo) =>
    message('400 X', JSON.stringify({ error: oneLine(echo), error_description: echo })),
  ),
  'a success with the request in place of what is needed': answering((echo) =>
    message(
      '201 Created',
      JSON.stringify({ subscription_id: echo, access_token: echo, token_type: echo, expires_in: echo }),
    ),
  ),
  'the request in the reason phrase and in headers': answering((echo) =>
    message(`400 ${oneLine(echo)}`, '', [
      `location: https://elsewhere.example/?${oneLine(echo)}`,
      `retry-after: ${oneLine(echo)}`,
      `www-authenticate: Bearer error="${oneLine(echo)}"`,
    ]),
  ),
  'a redirect to a path with the credentials': answering((echo) =>
    message('302 Found', '', [`location: /${/^authorization: \w+ (.*)$/im.exec(echo)?.[1]}`]),
  ),
  'an HTML page with the request': answering((echo) => message('200 OK', `<pre>${echo}</pre>`)),
  'the request in a body beyond the limit': answering((echo) =>
    message('400 X', echo.padEnd(1_100_000, echo)),
  ),
  'the request in place of an answer': async (connection) => {
    await connection.write(echoOf(await connection.request()))
    await connection.close()
  },
  'the request where a chunk size should be': async (connection) => {
    const echo = echoOf(await connection.request())
    await connection.write(`HTTP/1.1 400 X\r\ntransfer-encoding: chunked\r\n\r\n${echo}`)
    await connection.close()
  },
  'the request in a header that is none': async (connection) => {
    const echo = oneLine(echoOf(await connection.request()))
    await connection.write(`HTTP/1.1 400 X\r\n${echo}\r\n\r\n`)
    await connection.close()
  },
}

type Kind = keyof typeof auth

function clientFor({ origin }: ScriptedServer, kind: Kind) {
  const logger = recordingLogger()
  const credentials = { ...auth, clientCredentials: { ...auth.clientCredentials, authUrl: origin } }
  const retry = { baseDelayMs: 0, maxAttempts: 2 }
  const client = new NotificationClient({ baseUrl: origin, auth: credentials[kind], retry, logger })
  return { client, logger }
}

/** The credentials that each operation sends to this server: both kinds with parameters. */
const kinds: Readonly<Record<Operation['name'], Kind>> = {
  token: 'clientCredentials',
  create: 'basic',
  recreate: 'token',
  unsubscribe: 'basic',
  update: 'token',
}

const cases = Object.entries(echoes).flatMap(([name, script]) =>
  operations.map((operation) => ({ name, script, operation, kind: kinds[operation.name] })),
)

describe.concurrent('a server that sends back what it was sent', () => {
  test.for(cases)('$name: $operation.name with $kind', async ({ script, operation, kind }) => {
    await using server = await ScriptedServer.listen(tls, script)
    const { client, logger } = clientFor(server, kind)
    const [result] = await Promise.allSettled([operation.call(client, 30_000)])
    if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(NotificationError)
    expectNoSecretIn(result.status === 'rejected' ? result.reason : undefined, logger.lines, client)
    expect(server.seen).toBeGreaterThan(0)
    await client.close()
  })
})

test.for(Object.entries(auth))(
  'neither console.log nor JSON.stringify shows the %s of a client',
  async ([, kind]) => {
    const credentials = 'clientId' in kind ? { ...kind, authUrl: 'https://auth.example.com' } : kind
    const client = new NotificationClient({ baseUrl: 'https://service.example.com', auth: credentials })
    expectNoSecretIn(client)
  },
)

test('neither console.log nor JSON.stringify shows the parameters and headers of a keeper', () => {
  const keeper = new SubscriptionKeeper({
    client: new NotificationClient({ baseUrl: 'https://service.example.com', auth: auth.token }),
    name: 'coaching',
    store: new Map(),
    usernames: ['alice'],
    notificationTypes: ['behavioral'],
    callbackUrl: 'https://app.example.com/notifications',
    parameters: { token: secrets.parameter },
    headers: { UserData: secrets.header },
  })
  expectNoSecretIn(keeper, keeper.status())
})
