/**
 * A key-value store on your app's Redis client. Loads no Redis library.
 *
 * @module notification-subscriber/redis
 */
import { ConfigurationError } from '../errors.js'
import type { KeyValueStore } from './key-value-store.js'

export type { KeyValueStore } from './key-value-store.js'

/** The parts of an ioredis client (5 or 6; a `Redis` or a `Cluster`) that {@link redisStore} uses. */
export interface IoredisLike {
  /** Reads a value; `null` if there is none. */
  get(key: string): Promise<string | null>
  /** Writes a value without expiry. */
  set(key: string, value: string): Promise<unknown>
  /** Writes a value if there is none. */
  set(key: string, value: string, nx: 'NX'): Promise<unknown>
  /** Writes a value for a time in milliseconds. */
  set(key: string, value: string, px: 'PX', milliseconds: number): Promise<unknown>
  /** Writes a value for a time in milliseconds, if there is none. */
  set(key: string, value: string, px: 'PX', milliseconds: number, nx: 'NX'): Promise<unknown>
  /** Removes a value. */
  del(key: string): Promise<unknown>
  /** Runs a script in one step. */
  eval(script: string, numberOfKeys: number, ...keysAndArguments: string[]): Promise<unknown>
  /** Only ioredis has this method: by it `redisStore` recognizes the library. */
  defineCommand(name: string, definition: { lua: string; numberOfKeys?: number }): void
}

/** The parts of a node-redis client (4, 5 or 6; also a cluster, a sentinel or a pool) that {@link redisStore} uses. */
export interface NodeRedisLike {
  /** Reads a value; `null` if there is none. */
  get(key: string): Promise<unknown>
  /** Writes a value: `PX` keeps it for so many milliseconds, `NX` writes only if there is none. */
  set(key: string, value: string, options?: { PX?: number; NX?: true }): Promise<unknown>
  /** Removes a value. */
  del(key: string): Promise<unknown>
  /** Runs a script in one step. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  /** Only node-redis 4 and later has this method: by it `redisStore` recognizes the library. */
  pExpire(key: string, milliseconds: number): Promise<unknown>
}

/** A {@link KeyValueStore} with all four methods. */
export type RedisStore = Required<KeyValueStore>

/**
 * A store on your app's Redis client (docs/stores.md, Redis). Every operation has one key, so that the store works on a
 * cluster, too. The store neither connects nor closes the client. The app must listen to the client's
 * `error` events: in node-redis, an `error` event without a listener ends the process.
 *
 * @param redis - a client of ioredis (5 or 6) or of node-redis (4, 5 or 6)
 * @param options.prefix - begins every key, so that several programs can share a database. Default: `''`
 * @throws `ConfigurationError` for anything else, or a `prefix` that is no text
 *
 * @example
 * ```ts
 * const redis = new Redis('redis://127.0.0.1:6379')
 * redis.on('error', (error) => console.error('Redis:', error.message))
 * const store = redisStore(redis, { prefix: 'coaching:' })
 * ```
 */
export function redisStore(
  redis: IoredisLike | NodeRedisLike,
  options: { readonly prefix?: string | undefined } = {},
): RedisStore {
  const { prefix = '' } = options
  if (typeof prefix !== 'string') throw configurationError('prefix', 'must be text, such as `coaching:`')
  const commands = commandsOf(redis)
  return {
    async get(key) {
      const value = await commands.get(prefix + key)
      return typeof value === 'string' ? value : undefined
    },
    set: (key, value, ttlMs) => commands.set(prefix + key, value, ttlMs),
    delete: (key) => commands.delete(prefix + key),
    compareAndSet: (key, expected, value, ttlMs) =>
      expected === undefined
        ? commands.setIfNone(prefix + key, value, ttlMs)
        : commands.setIfEqual(prefix + key, expected, value, ttlMs),
  }
}

/** The commands that the store needs; each library spells them differently. */
interface Commands {
  get(key: string): Promise<unknown>
  set(key: string, value: string, ttlMs: number | undefined): Promise<unknown>
  delete(key: string): Promise<unknown>
  setIfNone(key: string, value: string, ttlMs: number | undefined): Promise<boolean>
  setIfEqual(key: string, expected: string, value: string, ttlMs: number | undefined): Promise<boolean>
}

/** Compares and writes in one step: Redis runs nothing else meanwhile. An empty third argument means no expiry. */
const setIfEqualScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[3] == '' then
  redis.call('SET', KEYS[1], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
`

function ioredisCommands(redis: IoredisLike): Commands {
  return {
    get: (key) => redis.get(key),
    set: (key, value, ttlMs) =>
      ttlMs === undefined ? redis.set(key, value) : redis.set(key, value, 'PX', ttlMs),
    delete: (key) => redis.del(key),
    async setIfNone(key, value, ttlMs) {
      const reply = await (ttlMs === undefined
        ? redis.set(key, value, 'NX')
        : redis.set(key, value, 'PX', ttlMs, 'NX'))
      return reply !== null
    },
    async setIfEqual(key, expected, value, ttlMs) {
      const reply = await redis.eval(setIfEqualScript, 1, key, expected, value, String(ttlMs ?? ''))
      return Number(reply) === 1
    },
  }
}

function nodeRedisCommands(redis: NodeRedisLike): Commands {
  const expiry = (ttlMs: number | undefined) => (ttlMs === undefined ? {} : { PX: ttlMs })
  return {
    get: (key) => redis.get(key),
    set: (key, value, ttlMs) => redis.set(key, value, expiry(ttlMs)),
    delete: (key) => redis.del(key),
    async setIfNone(key, value, ttlMs) {
      return (await redis.set(key, value, { ...expiry(ttlMs), NX: true })) !== null
    },
    async setIfEqual(key, expected, value, ttlMs) {
      const parameters = { keys: [key], arguments: [expected, value, String(ttlMs ?? '')] }
      return Number(await redis.eval(setIfEqualScript, parameters)) === 1
    },
  }
}

function commandsOf(redis: IoredisLike | NodeRedisLike): Commands {
  if (isIoredis(redis)) return ioredisCommands(redis)
  if (isNodeRedis(redis)) return nodeRedisCommands(redis)
  throw configurationError(
    'redis',
    'must be a client of ioredis (5 or 6) or of node-redis (4, 5 or 6), such as `new Redis(url)` of ioredis or ' +
      '`createClient({ url })` of redis',
  )
}

function isIoredis(redis: unknown): redis is IoredisLike {
  return canAll(redis, ['get', 'set', 'del', 'eval', 'defineCommand'])
}

function isNodeRedis(redis: unknown): redis is NodeRedisLike {
  return canAll(redis, ['get', 'set', 'del', 'eval', 'pExpire'])
}

function canAll(value: unknown, methods: readonly string[]): boolean {
  return methods.every((method) => typeof Object(value)[method] === 'function')
}

function configurationError(name: string, message: string): ConfigurationError {
  return new ConfigurationError(`redisStore cannot be made: \`${name}\` ${message}.`, {
    issues: [{ path: [name], message }],
  })
}
