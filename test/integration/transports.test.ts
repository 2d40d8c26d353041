/** What the client makes of a connection that breaks, at every stage, over every transport (docs/errors.md). */
import {
  type DispatcherLike,
  NotificationClient,
  type NotificationClientOptions,
} from 'notification-subscriber'
import { Agent } from 'undici'
import { Agent as Agent6 } from 'undici6'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { eventually } from '../support/eventually.js'
import { type Operation, operations, padding } from '../support/operations.js'
import { recordingLogger } from '../support/recording-logger.js'
import { type Script, ScriptedServer } from '../support/scripted-server.js'
import { auth, expectNoSecretIn } from '../support/secrets.js'
import { undici8 } from '../support/undici8.js'
import { type Outcome, type Stage, stages } from './stages.js'

const { tls } = createLoopbackCertificate()

// The client's own dispatcher and the global fetch take a private authority from the process only.
beforeAll(() => void vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0'))
afterAll(() => void vi.unstubAllEnvs())

interface TransportUnderTest extends AsyncDisposable {
  readonly options: Partial<NotificationClientOptions>
}

const nothingToClose = async () => {}

const Agent8 = undici8?.Agent

/** Each transport anew for each call, so that none finds the connection of another. */
const transports: Record<string, () => TransportUnderTest> = {
  'its own agent': () => ({ options: {}, [Symbol.asyncDispose]: nothingToClose }),
  'an undici Agent of ours': () => passed(new Agent({ connect: { rejectUnauthorized: false } })),
  'an Agent of undici 6': () => passed(new Agent6({ connect: { rejectUnauthorized: false } })),
  ...(Agent8 && {
    'an Agent of undici 8': () => passed(new Agent8({ connect: { rejectUnauthorized: false } })),
  }),
  fetch: () => ({ options: { fetch: globalThis.fetch }, [Symbol.asyncDispose]: nothingToClose }),
}

function passed(dispatcher: DispatcherLike & { destroy(): Promise<void> }): TransportUnderTest {
  return { options: { dispatcher }, [Symbol.asyncDispose]: () => dispatcher.destroy() }
}

/** Transports that do not show when a request leaves: what they were given may have been sent. */
const unshown: Readonly<Record<string, Outcome>> = {
  'garbage bytes in place of TLS': 'lost',
  'accepted, and TLS never answers': 'late',
}

/** By transport and stage. */
const otherwise: Readonly<Record<string, Readonly<Record<string, Outcome>>>> = {
  'an Agent of undici 6': unshown,
  'an Agent of undici 8': unshown,
  fetch: unshown,
}

/** Whether Node.js reports this stage to them as a part of the TLS handshake depends on the moment. */
const isAmbiguous = (transport: string, { name }: Stage) =>
  transport in otherwise && name === 'accepted and reset'

/** For calls that time out: long enough for a busy machine to get the request to the server. */
const shortTimeoutMs = 4_000
const longTimeoutMs = 50_000

interface Case {
  readonly open: () => TransportUnderTest
  readonly operation: Operation
  readonly script: Script
  readonly timeoutMs: number
  readonly refused?: boolean
}

/** Makes one call to a server with this script, and returns how it ended and how often the server saw it. */
async function outcomeOf({ open, operation, script, timeoutMs, refused }: Case) {
  await using server = await ScriptedServer.listen(tls, script)
  if (refused) await server.refuse()
  const logger = recordingLogger()
  await using underTest = open()
  const client = new NotificationClient({
    ...underTest.options,
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
  if (open === transports['its own agent']) await server.idle()
  if ('error' in result) expectNoSecretIn(result.error, logger.lines)
  return { ...result, seen: server.seen }
}

const isCreate = ({ name }: Operation) => name === 'create' || name === 'recreate'

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
    case 'success':
      return { value: operation.result, seen: 1 }
  }
}

const isSlow = (outcome: Outcome) => outcome === 'late' || outcome === 'not sent in time'

/** All operations over the own agent; what differs between transports shows in a create. */
const cases = Object.entries(transports).flatMap(([transport, open]) =>
  operations
    .filter(({ name }) => transport === 'its own agent' || name === 'create')
    .flatMap((operation) =>
      stages
        .filter((stage) => !isAmbiguous(transport, stage))
        .map((stage) => ({ transport, open, operation, stage })),
    ),
)

describe.concurrent('a connection that breaks', () => {
  test.for(cases)(
    '$transport, $operation.name: $stage.name',
    async ({ transport, open, operation, stage }) => {
      const outcome = otherwise[transport]?.[stage.name] ?? stage.outcome
      const script = stage.script(operation)
      const timeoutMs = isSlow(outcome) ? shortTimeoutMs : longTimeoutMs
      const notSeen = stage.outcome.startsWith('not sent') ? { seen: 0 } : {}
      expect(await outcomeOf({ open, operation, script, timeoutMs })).toMatchObject({
        ...expected(outcome, operation),
        ...notSeen,
      })
    },
  )

  test.for(Object.entries(transports))('%s: a refused connection sent nothing', async ([, open]) => {
    for (const operation of operations) {
      const call = { open, operation, script: () => {}, timeoutMs: longTimeoutMs, refused: true }
      expect(await outcomeOf(call)).toMatchObject(expected('not sent', operation))
    }
  })
})

test('no socket is left open by all this', async () => {
  const sockets = () => process.getActiveResourcesInfo().filter((type) => type === 'TCPSocketWrap')
  await eventually(() => expect(sockets()).toEqual([]))
})
