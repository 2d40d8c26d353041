/** design.md, "Requests": bodies are read up to 1 MiB; a body that breaks off spoils a success only. */
import { type FetchResponseLike, ResponseValidationError } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { failureOf } from '../support/failure.js'
import { fakeService, subscription } from '../support/fake-service.js'

const limit = 1024 * 1024
const bytes = (text: string) => new TextEncoder().encode(text)

/** A client of a service that gives this answer, and what has become of the answer's body. */
function clientAnswered(status: number, chunks: readonly (string | Error)[]) {
  const body = { read: 0, returned: false }
  const iterator: AsyncIterator<Uint8Array> = {
    async next() {
      const chunk = chunks[body.read++]
      if (chunk instanceof Error) throw chunk
      return chunk === undefined ? { done: true, value: undefined } : { done: false, value: bytes(chunk) }
    },
    async return() {
      body.returned = true
      throw new Error('the connection is gone')
    },
  }
  const answer: FetchResponseLike = {
    status,
    body: { [Symbol.asyncIterator]: () => iterator },
    text: () => expect.fail('the body is a stream'),
  }
  const auth = { getAccessToken: () => 'token' }
  const client = fakeService().client({ auth, fetch: async () => answer, retry: false })
  return { client, body }
}

describe('the limit of 1 MiB', () => {
  test('a body of exactly that is read whole, to its end', async () => {
    const end = '{"subscription_id":1}'
    const { client, body } = clientAnswered(201, [' '.repeat(limit - end.length), end])
    await expect(client.createSubscription(subscription)).resolves.toEqual({ subscriptionId: 1 })
    expect(body).toEqual({ read: 3, returned: false })
  })

  test('a longer one is cut off there, and its sender is let go', async () => {
    const { client, body } = clientAnswered(400, ['x'.repeat(limit - 1), 'yz', 'never read'])
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ status: 400 })
    expect(body).toEqual({ read: 2, returned: true })
  })

  test('beyond it, a 201 is not usable', async () => {
    const { client } = clientAnswered(201, [' '.repeat(limit), '{"subscription_id":1}'])
    const refused = await failureOf(client.createSubscription(subscription))
    expect(refused).toBeInstanceOf(ResponseValidationError)
    expect(refused).toMatchObject({ issues: [{ path: [], message: 'is incomplete or too long' }] })
  })
})

describe('a body that breaks off', () => {
  const broken = Object.assign(new Error('terminated'), { code: 'UND_ERR_SOCKET' })

  test.each([199, 300, 400, 500])('after %i keeps what arrived: the status is the answer', async (status) => {
    const { client } = clientAnswered(status, ['what arr', 'ived', broken])
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ code: 'API', status, body: 'what arrived' })
  })

  test.each([200, 299])('after %i is a broken connection: its content is needed', async (status) => {
    const { client } = clientAnswered(status, ['{"subscr', broken])
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ code: 'CONNECTION', requestSent: true })
    await expect(
      clientAnswered(status, [broken]).client.createSubscription(subscription),
    ).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', cause: { code: 'CONNECTION' } })
  })
})

describe('text', () => {
  test('characters may be split between chunks', async () => {
    const umlaut = bytes('ü')
    const answer: FetchResponseLike = {
      status: 400,
      body: (async function* () {
        yield umlaut.subarray(0, 1)
        yield umlaut.subarray(1)
      })(),
      text: () => expect.fail('the body is a stream'),
    }
    const auth = { getAccessToken: () => 'token' }
    const client = fakeService().client({ auth, fetch: async () => answer })
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ body: 'ü' })
  })

  test.each([
    ['null', null, ''],
    ['missing', undefined, 'from text()'],
    ['of a kind that cannot be read in parts', {}, 'from text()'],
    ['a string', 'text', 'from text()'],
  ])('a body that is %s is read as a fetch has it', async (_name, body, expected) => {
    const auth = { getAccessToken: () => 'token' }
    const answer = { status: 400, text: async () => 'from text()', ...(body !== undefined && { body }) }
    const client = fakeService().client({ auth, fetch: async () => answer })
    await expect(client.unsubscribe(1)).rejects.toMatchObject({ body: expected, retryAfterMs: undefined })
  })
})
