import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { ConfigurationError } from 'notification-subscriber'
import { redisStore } from 'notification-subscriber/redis'
import { describe, expect, test } from 'vitest'

/** Each method that a client may have, without any behaviour. */
const client = (...methods: string[]) => Object.fromEntries(methods.map((name) => [name, () => {}]))

describe('redisStore', () => {
  test.each([
    ['nothing', undefined],
    ['null', null],
    ['an address', 'redis://127.0.0.1:6379'],
    ['a Map', new Map()],
    ['the module instead of a client', { Redis: class {}, createClient() {} }],
    ['a client of node-redis 3, which calls back', client('get', 'set', 'del', 'eval', 'pexpire')],
    ['a client that cannot run scripts', client('get', 'set', 'del', 'defineCommand')],
  ])('refuses %s', (_name, redis) => {
    const make = () => redisStore(redis as never)
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(expect.objectContaining({ issues: [expect.objectContaining({ path: ['redis'] })] }))
  })

  test.each(['defineCommand', 'pExpire'])(
    'with %s, the mark of its library, says by what the client replies whether it stored',
    async (mark) => {
      const replies: unknown[] = ['OK', null, 1, 0]
      const reply = async () => replies.shift()
      const redis = { ...client('get', 'del', mark), set: reply, eval: reply }
      const store = redisStore(redis as never)
      const stored: boolean[] = []
      for (const expected of [undefined, undefined, 'old', 'old']) {
        stored.push(await store.compareAndSet('key', expected, 'new', 1_000))
      }
      expect(stored).toEqual([true, false, true, false])
    },
  )

  test('reads text, also from a client that returns bytes, and refuses anything else', async () => {
    const answers: unknown[] = ['text', Buffer.from('{"é":1}'), null, { parsed: true }]
    const store = redisStore({
      ...client('set', 'del', 'eval', 'pExpire'),
      get: async () => answers.shift(),
    } as never)
    expect([await store.get('key'), await store.get('key'), await store.get('key')]).toEqual([
      'text',
      '{"é":1}',
      undefined,
    ])
    await expect(store.get('key')).rejects.toThrow('a value of type object')
  })

  test('a client in legacy mode, which returns nothing, is no success', async () => {
    const store = redisStore({ ...client('get', 'set', 'del', 'eval', 'pExpire') } as never)
    await expect(store.compareAndSet('key', undefined, 'a')).rejects.toThrow('legacy mode')
  })
})

const root = fileURLToPath(new URL('../..', import.meta.url))

test('`notification-subscriber/redis` loads the errors only, and no Redis library', async () => {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['src/stores/redis.ts'],
    bundle: true,
    packages: 'external',
    format: 'esm',
    write: false,
    metafile: true,
  })
  const [output] = Object.values(metafile.outputs)
  expect(output?.imports).toEqual([])
  const inputs = Object.keys(output?.inputs ?? {}).sort()
  expect(inputs).toEqual(['src/errors.ts', 'src/stores/key-value-store.ts', 'src/stores/redis.ts'])
})
