/** Many calls at once: each takes its authorization when it is sent, however long it waits before that. */
import { createServer } from 'node:http'
import { NotificationClient } from 'notification-subscriber'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { Deadline } from '../../src/http/deadline.js'
import { Semaphore } from '../../src/http/semaphore.js'
import { eventually } from '../support/eventually.js'
import { failureOf } from '../support/failure.js'
import { fakeService, subscription, tokenAnswer } from '../support/fake-service.js'
import { serving } from '../support/listen.js'
import { routeOf } from '../support/routes.js'

afterEach(() => void vi.useRealTimers())

const limit = 32

describe('a call that waits for its turn', () => {
  const auth = { getAccessToken: () => 'token' }

  /** A service that answers when it is told to, and notes in which order it was asked. */
  async function heldService() {
    const paths: (string | undefined)[] = []
    const answers: (() => void)[] = []
    const server = await serving(
      createServer(({ url }, response) => {
        paths.push(url)
        answers.push(() => response.writeHead(204).end())
      }),
    )
    const client = () => new NotificationClient({ baseUrl: `http://${server.host}`, auth })
    return { ...server, paths, answers, client }
  }

  test('is sent in the order of the calls, never before its turn, and close() waits for it', async () => {
    await using service = await heldService()
    const client = service.client()
    const calls = Array.from({ length: limit + 3 }, (_, id) => client.unsubscribe(id))
    const closed = vi.fn()
    const closing = client.close().then(closed)
    await eventually(() => expect(service.paths).toHaveLength(limit))
    for (const further of [1, 2, 3]) {
      service.answers.shift()?.()
      await eventually(() => expect(service.paths).toHaveLength(limit + further))
    }
    expect(service.paths.slice(limit)).toEqual([32, 33, 34].map((id) => routeOf('unsubscribe', id).path))
    expect(closed).not.toHaveBeenCalled()
    for (const answer of service.answers) answer()
    await Promise.all([...calls, closing])
  })

  test('ends with its time limit or signal, was not sent, and leaves its turn to the next call', async () => {
    await using service = await heldService()
    await using client = service.client()
    const first = Array.from({ length: limit }, (_, id) => client.unsubscribe(id))
    await eventually(() => expect(service.paths).toHaveLength(limit))
    const abort = new AbortController()
    const onResponse = vi.fn()
    const late = failureOf(client.createSubscription(subscription, { timeoutMs: 100, onResponse }))
    const aborted = failureOf(client.createSubscription(subscription, { signal: abort.signal, onResponse }))
    const last = client.unsubscribe(99)
    abort.abort('enough')
    expect(await aborted).toBe('enough')
    expect(await late).toMatchObject({ code: 'TIMEOUT', phase: 'connection' })
    expect(service.paths).toHaveLength(limit)
    service.answers.shift()?.()
    await eventually(() => expect(service.paths.at(-1)).toBe(routeOf('unsubscribe', 99).path))
    for (const answer of service.answers) answer()
    await Promise.all([...first, last])
    expect(onResponse).not.toHaveBeenCalled()
  })

  test.each(Array.from({ length: 12 }, (_, ticks) => ticks))(
    'is aborted %i microtasks after the call before it has ended: the next call still gets its turn',
    async (ticks) => {
      const semaphore = new Semaphore(1)
      const abort = new AbortController()
      const deadline = (signal?: AbortSignal) => {
        const made = new Deadline(1_000, signal, () => expect.fail('too late'))
        onTestFinished(() => made.end())
        return made
      }
      expect(await semaphore.acquire(deadline())).toBe(false)
      const aborted = semaphore.acquire(deadline(abort.signal)).then(() => semaphore.release(), String)
      const last = semaphore.acquire(deadline())
      semaphore.release()
      for (let tick = 0; tick < ticks; tick++) await null
      abort.abort('aborted')
      expect(['aborted', undefined]).toContain(await aborted)
      expect(await last).toBe(true)
    },
  )

  test('asks a function of the caller for its token again', async () => {
    let count = 0
    const getAccessToken = () => `token-${count++}`
    const used: (string | undefined)[] = []
    await using server = await serving(
      createServer(({ headers }, response) => {
        used.push(headers.authorization)
        setTimeout(() => response.writeHead(204).end(), 50)
      }),
    )
    await using client = new NotificationClient({
      baseUrl: `http://${server.host}`,
      auth: { getAccessToken },
    })
    await Promise.all(Array.from({ length: limit + 1 }, (_, id) => client.unsubscribe(id)))
    // The last one took token-32 at first.
    expect(used).toContain('Bearer token-33')
    expect(used).not.toContain('Bearer token-32')
  })
})

describe('a 401 for a token that has expired on its way', () => {
  test('gets a new one, however often', async () => {
    vi.useFakeTimers()
    const expiries = 5
    const service = fakeService()
    service.onToken = (_call, count) => tokenAnswer(`token-${count}`, 1)
    // The way takes so long that the token expires, except that of the third, which was revoked.
    service.onCall = async (_call, count) => {
      if (count > expiries) return new Response(null, { status: 204 })
      if (count !== 3) await new Promise((resolve) => setTimeout(resolve, 1_000))
      return new Response('', { status: 401 })
    }
    const call = service.client({ retry: false }).unsubscribe(1)
    await vi.advanceTimersByTimeAsync(expiries * 1_000)
    await call
    const tokens = service.calls.map(({ headers }) => headers.get('authorization'))
    expect(tokens).toEqual(Array.from({ length: expiries + 1 }, (_, index) => `Bearer token-${index + 1}`))
    expect(service.tokenRequests).toHaveLength(expiries + 1)
  })

  test('and one that had expired when it came is not replaced without end', async () => {
    const service = fakeService()
    service.onToken = (_call, count) => tokenAnswer(`token-${count}`, 0)
    service.onCall = () => new Response('', { status: 401 })
    const error = await failureOf(service.client().unsubscribe(1))
    expect(error).toMatchObject({ code: 'API', status: 401 })
    expect(service.tokenRequests).toHaveLength(2)
  })
})
