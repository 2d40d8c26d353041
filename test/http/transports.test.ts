/** design.md, "Requests": what a dispatcher and a `fetch` are given, and what is read of their answers. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type DispatcherLike, type FetchLike, NotificationClient } from 'notification-subscriber'
import { Agent } from 'undici'
import { Agent as Agent6 } from 'undici6'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { eventually } from '../support/eventually.js'
import { baseUrl, fakeService, subscription } from '../support/fake-service.js'
import { freePort, listen } from '../support/listen.js'

const auth = { getAccessToken: () => 'token' }

async function* bodyOf(text: string) {
  yield new TextEncoder().encode(text)
}

type DispatchedRequest = Parameters<DispatcherLike['request']>[0]
type DispatchedAnswer = Awaited<ReturnType<DispatcherLike['request']>>

/** A client on a dispatcher that answers, or fails, as told. */
function clientOn(answer: () => Partial<DispatchedAnswer>, more: object = {}) {
  const requests: DispatchedRequest[] = []
  const dispatcher: DispatcherLike = {
    async request(options) {
      requests.push(options)
      return { statusCode: 204, headers: {}, body: bodyOf(''), ...answer() }
    },
    ...more,
  }
  const routes = { unsubscribe: { path: '/api/{subscriptionId}/end?now=yes' } }
  return { requests, client: new NotificationClient({ baseUrl, auth, dispatcher, routes, retry: false }) }
}

describe('a dispatcher', () => {
  test('is given origin, path with query, method, headers and body', async () => {
    const { client, requests } = clientOn(() => ({}))
    await client.unsubscribe(7)
    await client.updateSubscriptionParameters(7, { parameters: { token: 'a b' } })
    const headers = { accept: 'application/json', authorization: 'Bearer token' }
    expect(requests.map(({ signal: _signal, ...rest }) => rest)).toEqual([
      { origin: baseUrl, path: '/api/7/end?now=yes', method: 'DELETE', headers, body: null },
      {
        origin: baseUrl,
        path: '/api/subscriptions/7',
        method: 'PUT',
        headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
        body: 'token=a+b',
      },
    ])
  })

  test.each([
    [{ 'retry-after': '7' }, 7_000],
    [{ 'retry-after': ['7', '8'] }, 7_000],
    [{}, undefined],
  ])('answers with the headers %j', async (headers, retryAfterMs) => {
    const { client } = clientOn(() => ({ statusCode: 429, headers, body: bodyOf('busy') }))
    await expect(client.unsubscribe(7)).rejects.toMatchObject({ status: 429, body: 'busy', retryAfterMs })
  })

  test('that does not show when a request begins: it counts as sent', async () => {
    const fails = () => {
      throw new Error('broken')
    }
    await expect(clientOn(fails).client.unsubscribe(7)).rejects.toMatchObject({
      code: 'CONNECTION',
      requestSent: true,
    })
  })

  type Handler = Record<string, (...args: unknown[]) => unknown>

  /** A dispatcher that reports to its handler as a version of undici does. */
  const reporting = (report: (handler: Handler, abort: () => void) => void, abort = () => {}) => ({
    dispatch: (_options: unknown, handler: Handler) => {
      report(handler, abort)
      return true
    },
  })
  const onReporting = (report: (handler: Handler, abort: () => void) => void, abort?: () => void) =>
    clientOn(() => ({}), reporting(report, abort)).client.unsubscribe(7)

  const dialects = [
    {
      name: 'undici 7 and 8',
      start: (handler: Handler, abort: () => void) => handler.onRequestStart?.({ abort }, {}),
      answer: (handler: Handler, status: number, retryAfter?: string | string[]) =>
        handler.onResponseStart?.({}, status, { server: 'x', 'retry-after': retryAfter }, 'text'),
      data: (handler: Handler, text: string) => handler.onResponseData?.({}, Buffer.from(text)),
      end: (handler: Handler) => handler.onResponseEnd?.({}, {}),
      fail: (handler: Handler, fields?: object) =>
        handler.onResponseError?.({}, Object.assign(new Error('broken'), fields)),
    },
    {
      name: 'undici 6',
      start: (handler: Handler, abort: () => void) => handler.onConnect?.(abort, {}),
      answer: (handler: Handler, status: number, retryAfter?: string | string[]) =>
        handler.onHeaders?.(
          status,
          [
            'Server',
            'retry-after',
            ...[retryAfter ?? []].flat().flatMap((value) => ['Retry-After', value]),
          ].map((text) => Buffer.from(text)),
          () => {},
          'text',
        ),
      data: (handler: Handler, text: string) => handler.onData?.(Buffer.from(text)),
      end: (handler: Handler) => handler.onComplete?.([]),
      fail: (handler: Handler, fields?: object) =>
        handler.onError?.(Object.assign(new Error('broken'), fields)),
    },
  ]

  describe.each(dialects)('that reports as $name does', ({ start, answer, data, end, fail }) => {
    test.each([
      ['before a request begins', () => {}, {}, false],
      ['before it begins, reading a reset', () => {}, { code: 'ECONNRESET', syscall: 'read' }, false],
      ['as a mock, which breaks what it never began', () => {}, { code: 'ECONNRESET' }, true],
      ['after it', start, {}, true],
    ])('fails %s: was the request sent?', async (_when, begin, fields, requestSent) => {
      const call = onReporting((handler, abort) => {
        begin(handler, abort)
        fail(handler, fields)
      })
      await expect(call).rejects.toMatchObject({ code: 'CONNECTION', requestSent })
    })

    test.each([
      ['7', 7_000],
      [['7', '8'], 7_000],
      [undefined, undefined],
    ])('answers with Retry-After %j', async (retryAfter, retryAfterMs) => {
      const call = onReporting((handler, abort) => {
        start(handler, abort)
        answer(handler, 429, retryAfter)
        data(handler, 'bu')
        data(handler, 'sy')
        end(handler)
      })
      await expect(call).rejects.toMatchObject({ status: 429, body: 'busy', retryAfterMs })
    })

    test('takes no 1xx for the answer', async () => {
      const call = onReporting((handler, abort) => {
        start(handler, abort)
        answer(handler, 103, '7')
        answer(handler, 400)
        end(handler)
      })
      await expect(call).rejects.toMatchObject({ status: 400, body: '', retryAfterMs: undefined })
    })

    test('a connection that breaks after a 1xx has brought no answer', async () => {
      const call = onReporting((handler, abort) => {
        start(handler, abort)
        answer(handler, 103)
        fail(handler)
      })
      await expect(call).rejects.toMatchObject({ code: 'CONNECTION', requestSent: true })
    })

    test.each([
      [200, { code: 'CONNECTION', requestSent: true }],
      [299, { code: 'CONNECTION', requestSent: true }],
      [300, { code: 'API', status: 300, body: 'half' }],
      [404, { code: 'SUBSCRIPTION_NOT_FOUND', status: 404, body: 'half' }],
    ])('a body that breaks off after %i', async (status, error) => {
      const call = onReporting((handler, abort) => {
        start(handler, abort)
        answer(handler, status)
        data(handler, 'half')
        fail(handler)
      })
      await expect(call).rejects.toMatchObject(error)
    })

    test('the connection of a body that is too long is given up, and what comes after it ignored', async () => {
      const abort = vi.fn()
      const call = onReporting((handler, give) => {
        start(handler, give)
        answer(handler, 404)
        data(handler, 'a'.repeat(2 ** 20))
        expect(abort).not.toHaveBeenCalled()
        data(handler, 'b')
        data(handler, 'c')
        fail(handler)
      }, abort)
      await expect(call).rejects.toMatchObject({ status: 404, body: 'a'.repeat(2 ** 20) })
      expect(abort.mock.calls).toEqual([[new Error('the request is abandoned')]])
    })

    test('a call that is aborted gives up its connection, also one that stands only later', async () => {
      for (const startsLate of [false, true]) {
        const abort = vi.fn()
        const controller = new AbortController()
        let begin = () => {}
        const { client } = clientOn(
          () => ({}),
          reporting((handler) => {
            begin = () => void start(handler, abort)
            if (!startsLate) begin()
          }),
        )
        const call = client.unsubscribe(7, { signal: controller.signal })
        await new Promise((resolve) => setImmediate(resolve))
        controller.abort(new Error('enough'))
        await expect(call).rejects.toThrow('enough')
        if (startsLate) {
          expect(abort).not.toHaveBeenCalled()
          begin()
        }
        expect(abort).toHaveBeenCalledOnce()
      }
    })
  })

  test('whose dispatch throws: nothing was sent', async () => {
    const { client } = clientOn(() => ({}), {
      dispatch: () => {
        throw new Error('broken')
      },
    })
    await expect(client.unsubscribe(7)).rejects.toMatchObject({ code: 'CONNECTION', requestSent: false })
  })

  test.each([
    ['that does not show when a request begins', {}, 'OUTCOME_UNKNOWN'],
    ['that began none', { dispatch: () => true }, 'TIMEOUT'],
  ])('%s, and hangs: a create of unknown outcome, if it may have been sent', async (_name, more, code) => {
    const { client } = clientOn(() => ({}), { ...more, request: () => new Promise(() => {}) })
    await expect(client.createSubscription(subscription, { timeoutMs: 20 })).rejects.toMatchObject({ code })
  })

  test('is not closed by the client', async () => {
    const close = vi.fn()
    const { client } = clientOn(() => ({}), { close, destroy: close })
    await client.unsubscribe(7)
    await client.close()
    expect(close).not.toHaveBeenCalled()
  })
})

describe('on a loopback server', () => {
  let server: Server
  const open = new Set<object>()
  afterEach(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })

  async function serve(handler: RequestListener): Promise<string> {
    server = createServer(handler)
    server.on('connection', (socket) => {
      open.add(socket)
      socket.once('close', () => open.delete(socket))
    })
    return `http://127.0.0.1:${await listen(server)}`
  }

  const clientOf = (address: string, options: object = {}) =>
    new NotificationClient({
      baseUrl: address,
      auth,
      allowInsecureLoopback: true,
      retry: false,
      ...options,
    })

  test('a burst of calls waits in line for 32 connections, and close() leaves none', async () => {
    const waiting: (() => void)[] = []
    let allBusy = false
    const address = await serve((_request, response) => {
      waiting.push(() => response.writeHead(204).end())
      // None is answered before 32 are under way; the others come on the same connections.
      allBusy ||= waiting.length === 32
      if (allBusy) for (const answer of waiting.splice(0)) answer()
    })
    let connections = 0
    server.on('connection', () => connections++)
    const client = clientOf(address)
    await Promise.all(Array.from({ length: 80 }, (_, id) => client.unsubscribe(id)))
    expect(connections).toBe(32)
    await client.close()
    await eventually(() => expect(open.size).toBe(0))
  })

  test.each([
    ['undici 7', () => new Agent()],
    ['undici 6', () => new Agent6()],
  ])('whether a request was sent is known with a dispatcher of %s', async (_name, newAgent) => {
    const address = await serve((request) => request.socket.resetAndDestroy())
    const dispatcher = newAgent()
    const client = clientOf(address, { dispatcher })
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ code: 'CONNECTION', requestSent: true })
    const nobody = `http://127.0.0.1:${await freePort()}`
    await expect(clientOf(nobody, { dispatcher }).unsubscribe(1)).rejects.toMatchObject({
      code: 'CONNECTION',
      requestSent: false,
    })
    await dispatcher.destroy()
  })

  test("a caller's abort ends the request, with the caller's reason", async () => {
    const abort = new AbortController()
    const address = await serve(() => abort.abort('enough'))
    await expect(clientOf(address).unsubscribe(1, { signal: abort.signal })).rejects.toBe('enough')
    await eventually(() => expect(open.size).toBe(0))
  })

  test('an abort at any moment of the first request ends it, and sends nothing afterwards', async () => {
    let requests = 0
    const address = await serve(() => requests++)
    for (let turns = 0; turns < 12; turns++) {
      const abort = new AbortController()
      const client = clientOf(address)
      const call = client.unsubscribe(1, { signal: abort.signal })
      // From here on, only microtasks separate the call from its request.
      await import('undici')
      for (let turn = 0; turn < turns; turn++) await null
      const requestsBefore = requests
      abort.abort('enough')
      await expect(call).rejects.toBe('enough')
      expect(requests).toBe(requestsBefore)
      await client.close()
    }
    await eventually(() => expect(open.size).toBe(0))
    expect(requests).toBe(0)
  })
})

describe('a fetch', () => {
  test('is called without a receiver, with the request and nothing else', async () => {
    const calls: [unknown, string, object][] = []
    const fetch: FetchLike = async function (this: unknown, url, { signal, ...init }) {
      expect(signal).toBeInstanceOf(AbortSignal)
      calls.push([this, url, init])
      return new Response(null, { status: 204 })
    }
    const client = new NotificationClient({ baseUrl, auth, fetch })
    await client.unsubscribe(7)
    await client.updateSubscriptionParameters(7, { parameters: { token: 'x' } })
    const headers = { accept: 'application/json', authorization: 'Bearer token' }
    const url = `${baseUrl}/api/subscriptions/7`
    expect(calls).toStrictEqual([
      [undefined, url, { method: 'DELETE', headers, redirect: 'manual' }],
      [
        undefined,
        url,
        {
          method: 'PUT',
          headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
          body: 'token=x',
          redirect: 'manual',
        },
      ],
    ])
  })

  test("is told of a caller's abort, with the caller's reason", async () => {
    const service = fakeService()
    const abort = new AbortController()
    service.onCall = ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(new Error('as fetch does')))
        abort.abort('enough')
      })
    await expect(service.client().unsubscribe(1, { signal: abort.signal })).rejects.toBe('enough')
    expect(service.calls[0]?.signal).toMatchObject({ aborted: true, reason: 'enough' })
  })
})
