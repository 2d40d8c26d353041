/** design.md, "Requests": what the client makes of a connection that breaks, at every stage, for every method. */
import { NotificationClient, type NotificationClientOptions } from 'notification-subscriber'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { eventually } from '../support/eventually.js'
import { recordingLogger } from '../support/recording-logger.js'
import { auth, expectNoSecretIn } from '../support/secrets.js'
import { type Operation, operations, padding } from './operations.js'
import { type Script, ScriptedServer } from './scripted-server.js'
import { type Outcome, stages } from './stages.js'

const { tls } = createLoopbackCertificate()

// The client's own dispatcher and the global fetch take a private authority from the process only.
beforeAll(() => void vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0'))
afterAll(() => void vi.unstubAllEnvs())

const transports = {
  undici: {},
  fetch: { fetch: globalThis.fetch },
} satisfies Record<string, Partial<NotificationClientOptions>>

/** For calls that time out: long enough for a busy machine to get the request to the server. */
const shortTimeoutMs = 2_000
const longTimeoutMs = 30_000

interface Case {
  readonly transport: keyof typeof transports
  readonly operation: Operation
  readonly script: Script
  readonly timeoutMs: number
  readonly refused?: boolean
}

/** Makes one call to a server with this script, and tells how it ended and how often the server saw it. */
async function outcomeOf({ transport, operation, script, timeoutMs, refused }: Case) {
  await using server = await ScriptedServer.listen(tls, script)
  if (refused) await server.refuse()
  const logger = recordingLogger()
  const client = new NotificationClient({
    ...transports[transport],
    baseUrl: server.origin,
    auth:
      operation.name === 'token'
        ? { ...auth.clientCredentials, authUrl: server.origin, scope: padding }
        : auth.token,
    retry: { baseDelayMs: 0 },
    logger,
  })
  const result = await operation.call(client, timeoutMs).then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  await client.close()
  if (transport === 'undici') await server.idle()
  if ('error' in result) expectNoSecretIn(result.error, logger.lines)
  return { ...result, seen: server.seen }
}

const isCreate = ({ name }: Operation) => name === 'create' || name === 'recreate'

/** The table of design.md. */
function expected(outcome: Outcome, operation: Operation): object {
  const once = operation.name === 'create'
  switch (outcome) {
    case 'not sent':
      return { error: { code: 'CONNECTION', requestSent: false }, seen: 0 }
    case 'not sent in time':
      return { error: { code: 'TIMEOUT' }, seen: 0 }
    case 'lost': {
      const cause = { code: 'CONNECTION', requestSent: true }
      return { error: isCreate(operation) ? { code: 'OUTCOME_UNKNOWN', cause } : cause, seen: once ? 1 : 3 }
    }
    case 'late': {
      const cause = { code: 'TIMEOUT' }
      return { error: isCreate(operation) ? { code: 'OUTCOME_UNKNOWN', cause } : cause, seen: 1 }
    }
    case 'unusable':
      return operation.result === undefined
        ? { value: undefined, seen: 1 }
        : { error: { code: 'RESPONSE_VALIDATION' }, seen: 1 }
    case 'not the service':
      return { error: { code: 'RESPONSE_VALIDATION', status: 200 }, seen: 1 }
    case 'success':
      return { value: operation.result, seen: 1 }
  }
}

const cases = stages.flatMap((stage) => operations.map((operation) => ({ stage, operation })))
const isSlow = (outcome: Outcome) => outcome === 'late' || outcome === 'not sent in time'
const timeoutMsFor = (outcome: Outcome) => (isSlow(outcome) ? shortTimeoutMs : longTimeoutMs)

describe.concurrent('a connection that breaks (design.md, "Requests")', () => {
  test.for(cases)('$stage.name: $operation.name is $stage.outcome', async ({ stage, operation }) => {
    const script = stage.script(operation)
    const timeoutMs = timeoutMsFor(stage.outcome)
    const outcome = await outcomeOf({ transport: 'undici', operation, script, timeoutMs })
    expect(outcome).toMatchObject(expected(stage.outcome, operation))
  })

  test.for(operations)('refused: $name is not sent', async (operation) => {
    const script = () => {}
    const outcome = await outcomeOf({
      transport: 'undici',
      operation,
      script,
      timeoutMs: longTimeoutMs,
      refused: true,
    })
    expect(outcome).toMatchObject(expected('not sent', operation))
  })
})

describe.concurrent('the same with `fetch`, which does not tell when a request leaves', () => {
  /** Fetch sees the certain cases only; it decodes gzip by itself. */
  const otherwise = new Map<string, Outcome>([
    ['garbage bytes in place of TLS', 'lost'],
    ['accepted, and TLS never answers', 'late'],
    ['a gzip body that nobody asked for', 'success'],
  ])
  /** Whether Node reports it as a part of the TLS handshake depends on the moment. */
  const isAmbiguous = 'accepted and reset'
  const selected = cases.filter(
    ({ stage, operation }) =>
      stage.name !== isAmbiguous && operation.name !== 'update' && operation.name !== 'token',
  )
  test.for(selected)('$stage.name: $operation.name', async ({ stage, operation }) => {
    const script = stage.script(operation)
    const outcome = otherwise.get(stage.name) ?? stage.outcome
    const wanted = expected(outcome, operation)
    const notSeen = stage.outcome.startsWith('not sent') ? { seen: 0 } : {}
    expect(
      await outcomeOf({ transport: 'fetch', operation, script, timeoutMs: timeoutMsFor(outcome) }),
    ).toMatchObject({ ...wanted, ...notSeen })
  })
})

test('no socket is left open by all this', async () => {
  const sockets = () => process.getActiveResourcesInfo().filter((type) => type === 'TCPSocketWrap')
  await eventually(() => expect(sockets()).toEqual([]))
})
