/** Stores on a Redis, opened and closed as our documents say. */
import KeyvRedis from '@keyv/redis'
import { Redis } from 'ioredis'
import Keyv from 'keyv'
import type { KeyValueStore } from 'notification-subscriber'
import { type RedisStore, redisStore } from 'notification-subscriber/redis'
import { createClient } from 'redis'

export interface OpenStore<Store extends KeyValueStore = RedisStore> {
  readonly store: Store
  close(): Promise<void> | void
}

/** Errors of a client whose server is away are expected here; without a listener they end the process. */
const ignore = () => {}

export async function ioredisOn(url: string): Promise<OpenStore> {
  const redis = new Redis(url)
  redis.on('error', ignore)
  return { store: redisStore(redis), close: () => redis.disconnect() }
}

/** Also resolves while the server is away: the client goes on trying to connect. */
export async function nodeRedisOn(url: string): Promise<OpenStore> {
  const client = createClient({ url })
  client.on('error', ignore)
  client.connect().catch(ignore)
  return { store: redisStore(client), close: () => client.destroy() }
}

export async function keyvOn(url: string): Promise<OpenStore<Keyv<string>>> {
  const adapter = new KeyvRedis(url)
  const keyv = new Keyv<string>(adapter)
  keyv.on('error', ignore)
  return { store: keyv, close: () => adapter.disconnect(true) }
}
