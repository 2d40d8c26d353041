/**
 * A key-value store on your app's Redis client. Loads no Redis library.
 *
 * @module notification-subscriber/redis
 */
import { invalidArgument, type KeyValueStore, storedText } from './key-value-store.js'

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
 * A store on your app's Redis client (docs/stores.md, Redis). Every command has one key, so that the store works on a
 * cluster, too. The store neither connects nor closes the client. The app must listen to the client's
 * `error` events: in node-redis, an `error` event without a listener ends the process.
 *
 * @param redis - a client of ioredis (5 or 6) or of node-redis (4, 5 or 6)
 * @param options.prefix - begins every key, so that several programs can share a database. Default: `''`
 * @throws `ConfigurationError` for anything else, or a `prefix` that is no text
 *
 * @example
 * ```ts
 * const redis = new Redis('redis://127.0.0.1:6379', { socketTimeout: 5_000 }) // leaves a node that falls silent
 * redis.on('error', (error) => console.error('Redis:', error.message))
 * const store = redisStore(redis, { prefix: 'coaching:' })
 * ```
 */
export function redisStore(
  redis: IoredisLike | NodeRedisLike,
  options: { readonly prefix?: string | undefined } = {},
): RedisStore {
  const { prefix = '' } = options
  if (typeof prefix !== 'string') throw unusable('prefix', 'must be text, such as `coaching:`')
  const commands = commandsOf(redis)
  return {
    async get(key) {
      const value = await redis.get(prefix + key)
      // A client may return bytes.
      return storedText(value instanceof Uint8Array ? new TextDecoder().decode(value) : value)
    },
    set: (key, value, ttlMs) => commands.set(prefix + key, value, ttlMs),
    delete: (key) => redis.del(prefix + key),
    async compareAndSet(key, expected, value, ttlMs) {
      if (expected === undefined) {
        const answer = await commands.setIfNone(prefix + key, value, ttlMs)
        if (answer !== undefined) return answer !== null
        throw new TypeError('The Redis client returned nothing: turn off its legacy mode.')
      }
      const parameters = [expected, value, String(ttlMs ?? '')]
      return Number(await commands.runScript(setIfEqualScript, prefix + key, parameters)) === 1
    },
  }
}

const unusable = invalidArgument('redisStore cannot be made')

/** The commands that each library spells differently. */
interface Commands {
  set(key: string, value: string, ttlMs: number | undefined): Promise<unknown>
  setIfNone(key: string, value: string, ttlMs: number | undefined): Promise<unknown>
  runScript(script: string, key: string, parameters: string[]): Promise<unknown>
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

function commandsOf(redis: IoredisLike | NodeRedisLike): Commands {
  if (isOf<IoredisLike>(redis, 'defineCommand')) {
    return {
      set: (key, value, ttlMs) =>
        ttlMs === undefined ? redis.set(key, value) : redis.set(key, value, 'PX', ttlMs),
      setIfNone: (key, value, ttlMs) =>
        ttlMs === undefined ? redis.set(key, value, 'NX') : redis.set(key, value, 'PX', ttlMs, 'NX'),
      runScript: (script, key, parameters) => redis.eval(script, 1, key, ...parameters),
    }
  }
  if (isOf<NodeRedisLike>(redis, 'pExpire')) {
    const expiry = (ttlMs: number | undefined) => (ttlMs === undefined ? {} : { PX: ttlMs })
    return {
      set: (key, value, ttlMs) => redis.set(key, value, expiry(ttlMs)),
      setIfNone: (key, value, ttlMs) => redis.set(key, value, { ...expiry(ttlMs), NX: true }),
      runScript: (script, key, parameters) => redis.eval(script, { keys: [key], arguments: parameters }),
    }
  }
  throw unusable(
    'redis',
    'must be a client of ioredis (5 or 6) or of node-redis (4, 5 or 6), such as `new Redis(url)` of ioredis or ' +
      '`createClient({ url })` of redis',
  )
}

/** @param ownMethod - a method by which this library is recognized: the other one has no such method */
function isOf<Library>(redis: unknown, ownMethod: keyof Library & string): redis is Library {
  const methods = ['get', 'set', 'del', 'eval', ownMethod]
  return methods.every((method) => typeof Object(redis)[method] === 'function')
}
