/** Clients that share a token through a real Redis, each with a connection of its own, as processes have. */
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { credentials, fakeService } from '../../support/fake-service.js'
import { RedisServer } from '../../support/redis-server.js'
import { ioredisOn, keyvOn, nodeRedisOn, type OpenStore } from './stores.js'

let server: RedisServer
beforeEach(async () => {
  server = await RedisServer.start()
})
afterEach(() => server[Symbol.asyncDispose]())

describe.each([
  ['ioredis', ioredisOn],
  ['node-redis', nodeRedisOn],
  ['Keyv', keyvOn],
])('%s', (_library, open: (url: string) => OpenStore) => {
  test('a later process uses the token of the first', async () => {
    const service = fakeService()
    const [first, second] = [open(server.url), open(server.url)]
    const tokenOf = ({ store }: OpenStore) =>
      service.client({ auth: { ...credentials, tokenCache: store } }).getAccessToken()
    expect(await tokenOf(first)).toBe('token-1')
    const redis = new Redis(server.url)
    await expect.poll(() => redis.dbsize()).toBe(1)
    redis.disconnect()
    expect(await tokenOf(second)).toBe('token-1')
    await first.close()
    await second.close()
  })

  test.each([
    ['killed', (redis: RedisServer) => redis.kill()],
    ['stopped', async (redis: RedisServer) => redis.stop()],
  ])('every call succeeds while Redis is %s', async (_how, end) => {
    const { store, close } = open(server.url)
    await expect
      .poll(async () => {
        await store.set('kept', 'while Redis is up')
        return store.get('kept')
      })
      .toBe('while Redis is up')
    await end(server)
    const service = fakeService()
    const client = service.client({ auth: { ...credentials, tokenCache: store } })
    expect(await client.getAccessToken()).toBe('token-1')
    await close()
  })
})
