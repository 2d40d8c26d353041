/** Bodies are read up to 1 MiB; a body that breaks off, or does not end, spoils a success only. */
import { type NotificationClientOptions, ResponseValidationError } from 'notification-subscriber'
import { Dispatcher } from 'undici'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { failureOf } from '../support/failure.js'
import { fakeService, subscription } from '../support/fake-service.js'

const limit = 1024 * 1024
const auth = { getAccessToken: () => 'token' }

const hangs = Symbol('hangs')

interface Answer {
  readonly status: number
  /** The pieces of the body. An error breaks it off, and nothing follows after `hangs`. */
  readonly chunks: readonly (Uint8Array | string | Error | typeof hangs)[]
  /** How many pieces were read, the end included, and whether the sender was let go before the end. */
  readonly body: { read: number; isLetGo: boolean }
}

function nextOf({ chunks, body }: Answer): Uint8Array | typeof hangs | undefined {
  const chunk = chunks[body.read++]
  if (chunk instanceof Error) throw chunk
  return typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk
}

/** @param signal - lets the sender go, as a real `fetch` does */
function streamOf(answer: Answer, signal?: AbortSignal): AsyncIterable<Uint8Array> {
  signal?.addEventListener('abort', () => {
    answer.body.isLetGo = true
  })
  const iterator: AsyncIterator<Uint8Array> = {
    async next() {
      const value = nextOf(answer)
      if (value === hangs) return new Promise(() => {})
      return value === undefined ? { done: true, value } : { done: false, value }
    },
  }
  return { [Symbol.asyncIterator]: () => iterator }
}

/** A dispatcher of our undici. */
class Answering extends Dispatcher {
  readonly #answer: Answer

  constructor(answer: Answer) {
    super()
    this.#answer = answer
  }

  override dispatch(_options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const { status, body } = this.#answer
    const abort = () => {
      body.isLetGo = true
    }
    const controller = { aborted: false, paused: false, reason: null, abort, pause() {}, resume() {} }
    handler.onRequestStart?.(controller, undefined)
    handler.onResponseStart?.(controller, status, {})
    try {
      for (let chunk = nextOf(this.#answer); chunk !== undefined; chunk = nextOf(this.#answer)) {
        if (chunk === hangs) return true
        handler.onResponseData?.(controller, Buffer.from(chunk))
        if (body.isLetGo) return true
      }
      handler.onResponseEnd?.(controller, {})
    } catch (error) {
      handler.onResponseError?.(controller, error as Error)
    }
    return true
  }
}

const transports: Record<string, (answer: Answer) => Partial<NotificationClientOptions>> = {
  fetch: (answer) => ({
    fetch: async (_url, { signal }) => ({
      status: answer.status,
      body: streamOf(answer, signal),
      text: () => expect.fail('the body is a stream'),
    }),
  }),
  'a dispatcher of our undici': (answer) => ({ dispatcher: new Answering(answer) }),
  'a dispatcher of another make': (answer) => ({
    dispatcher: {
      request: async ({ signal }) => ({
        statusCode: answer.status,
        headers: {},
        body: streamOf(answer, signal),
      }),
    },
  }),
}

describe.each(Object.entries(transports))('over %s', (_name, transport) => {
  /** A client of a service that gives this answer, and what has become of the answer's body. */
  function clientAnswered(status: number, chunks: Answer['chunks']) {
    const body = { read: 0, isLetGo: false }
    const options = transport({ status, chunks, body })
    return { client: fakeService().client({ auth, fetch: undefined, retry: false, ...options }), body }
  }

  test('a body of exactly 1 MiB is read whole, to its end', async () => {
    const end = '{"subscription_id":1}'
    const { client, body } = clientAnswered(201, [' '.repeat(limit - end.length), end])
    await expect(client.createSubscription(subscription)).resolves.toEqual({ subscriptionId: 1 })
    expect(body).toEqual({ read: 3, isLetGo: false })
  })

  test('a longer one is cut off there, and its sender is let go', async () => {
    const { client, body } = clientAnswered(400, ['x'.repeat(limit - 1), 'yz', 'never read'])
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ status: 400 })
    expect(body).toEqual({ read: 2, isLetGo: true })
  })

  test('of a piece that is too long, the beginning is kept', async () => {
    const { client } = clientAnswered(400, ['beginning ', 'x'.repeat(2 * limit)])
    const shown = `beginning ${'x'.repeat(64 * 1024)}`.slice(0, 64 * 1024)
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ body: shown })
  })

  test('beyond 1 MiB, a 201 is not usable', async () => {
    const { client } = clientAnswered(201, [' '.repeat(limit), '{"subscription_id":1}'])
    const error = await failureOf(client.createSubscription(subscription))
    expect(error).toBeInstanceOf(ResponseValidationError)
    expect(error).toMatchObject({ issues: [{ path: [], message: 'is incomplete or too long' }] })
  })

  const broken = Object.assign(new Error('terminated'), { code: 'UND_ERR_SOCKET' })

  test.each([300, 400, 500])(
    'a body that breaks off after %i keeps what arrived: the status is the answer',
    async (status) => {
      const { client } = clientAnswered(status, ['what arr', 'ived', broken])
      await expect(client.unsubscribe(1)).rejects.toMatchObject({ code: 'API', status, body: 'what arrived' })
    },
  )

  test.each([200, 299])(
    'a body that breaks off after %i is a broken connection: its content is needed',
    async (status) => {
      const { client } = clientAnswered(status, ['{"subscr', broken])
      await expect(client.unsubscribe(1)).rejects.toMatchObject({ code: 'CONNECTION', requestSent: true })
      const creates = clientAnswered(status, [broken]).client
      await expect(creates.createSubscription(subscription)).rejects.toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        cause: { code: 'CONNECTION' },
      })
    },
  )

  describe('a body that does not end', () => {
    function withFakeTimers() {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      onTestFinished(() => void vi.useRealTimers())
    }

    test.each([300, 400, 500])('after %i is cut off after 2 s: the status is the answer', async (status) => {
      withFakeTimers()
      const { client, body } = clientAnswered(status, ['what arrived', hangs])
      const failure = failureOf(client.unsubscribe(1))
      await vi.advanceTimersByTimeAsync(1_999)
      expect(body.isLetGo).toBe(false)
      await vi.advanceTimersByTimeAsync(1)
      expect(await failure).toMatchObject({ code: 'API', status, body: 'what arrived' })
      expect(body.isLetGo).toBe(true)
    })

    test('after a success is waited for', async () => {
      withFakeTimers()
      const { client } = clientAnswered(201, ['{"subscr', hangs])
      const failure = failureOf(client.createSubscription(subscription))
      await vi.advanceTimersByTimeAsync(30_000)
      expect(await failure).toMatchObject({ code: 'OUTCOME_UNKNOWN', cause: { phase: 'answer' } })
    })
  })

  test('characters may be split between chunks', async () => {
    const umlaut = new TextEncoder().encode('ü')
    const { client } = clientAnswered(400, [umlaut.subarray(0, 1), umlaut.subarray(1)])
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ body: 'ü' })
  })
})

describe('a fetch may answer with', () => {
  const clientOn = (answer: object) =>
    fakeService().client({
      auth,
      fetch: async () => ({ text: async () => 'from text()', ...answer }) as never,
    })

  test.each([
    ['null', null, ''],
    ['missing', undefined, 'from text()'],
    ['of a kind that cannot be read in parts', {}, 'from text()'],
    ['a string', 'text', 'from text()'],
  ])('a body that is %s', async (_name, body, expected) => {
    const client = clientOn({ status: 400, ...(body !== undefined && { body }) })
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ body: expected, retryAfterMs: undefined })
  })

  test('199, after which a body that breaks off keeps what arrived, too', async () => {
    const chunks = ['what arrived', new Error('terminated')]
    const client = clientOn({
      status: 199,
      body: streamOf({ status: 199, chunks, body: { read: 0, isLetGo: false } }),
    })
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ status: 199, body: 'what arrived' })
  })
})
