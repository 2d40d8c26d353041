/** Stores on a Redis, opened and closed as docs/stores.md says. None waits for its server, which may be away. */
import KeyvRedis from '@keyv/redis'
import { Redis } from 'ioredis'
import Keyv from 'keyv'
import type { KeyValueStore } from 'notification-subscriber'
import { type RedisStore, redisStore } from 'notification-subscriber/redis'
import { createClient } from 'redis'

export interface OpenStore<Store extends KeyValueStore = KeyValueStore> {
  readonly store: Store
  close(): Promise<void> | void
}

/** Errors of a client whose server is away are expected here; without a listener they end the process. */
function ignoreErrors() {}

export function ioredisOn(url: string): OpenStore<RedisStore> {
  const redis = new Redis(url, { commandTimeout: 1_000 })
  redis.on('error', ignoreErrors)
  return { store: redisStore(redis), close: () => redis.disconnect() }
}

export function nodeRedisOn(url: string): OpenStore<RedisStore> {
  const redis = createClient({ url })
  redis.on('error', ignoreErrors)
  redis.connect().catch(ignoreErrors)
  return { store: redisStore(redis), close: () => redis.destroy() }
}

export function keyvOn(url: string): OpenStore {
  const adapter = new KeyvRedis({ url, disableOfflineQueue: true })
  const keyv = new Keyv<string>(adapter)
  keyv.on('error', ignoreErrors)
  return { store: keyv, close: () => adapter.disconnect(true) }
}
