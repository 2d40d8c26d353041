/** What stood in Redis at any time, and which process wrote and read it, as Redis' own MONITOR tells. */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'

/** A read, or a write that took place. */
export interface StoreCommand {
  /** When Redis carried it out, in milliseconds since 1970. */
  readonly at: number
  /** The process that sent it. */
  readonly process: string
  readonly kind: 'read' | 'write'
  readonly key: string
  /** What stood there, or stands there since. */
  readonly value: string | undefined
}

/** A user's record in the store, as far as these tests read it. */
export interface StoredUser {
  readonly username: string
  readonly id?: number
  /** Which call its writer is about to send. */
  readonly claim?: { readonly call: string }
}

export class StoreHistory implements Disposable {
  readonly commands: StoreCommand[] = []
  readonly #monitor: Redis
  readonly #url: string
  readonly #values = new Map<string, string>()
  readonly #parsed = new Map<string, StoredUser>()

  private constructor(url: string, monitor: Redis, processOf: (source: string) => string | undefined) {
    this.#url = url
    this.#monitor = monitor
    monitor.on('monitor', (time: string, args: readonly string[], source: string) => {
      const process = processOf(source)
      // What a script does is told once more, as its own commands; and the test itself reads, too.
      if (process !== undefined) this.#note(Number(time) * 1_000, process, args)
    })
  }

  /** @param processOf - the process that an address belongs to */
  static async start(url: string, processOf: (source: string) => string | undefined): Promise<StoreHistory> {
    const redis = new Redis(url)
    try {
      return new StoreHistory(url, await redis.monitor(), processOf)
    } finally {
      redis.disconnect()
    }
  }

  /** Resolves when everything is recorded that Redis has carried out so far: on a busy machine that may be seconds late. */
  async caughtUp(): Promise<void> {
    const mark = randomUUID()
    const redis = new Redis(this.#url)
    const seen = new Promise<void>((resolve) => {
      const look = (_time: string, args: readonly string[]) => {
        if (!args.includes(mark)) return
        this.#monitor.off('monitor', look)
        resolve()
      }
      this.#monitor.on('monitor', look)
    })
    try {
      await redis.echo(mark)
      await seen
    } finally {
      redis.disconnect()
    }
  }

  /** Every write of a key that took place, the first one first. */
  writesOf(key: string): StoreCommand[] {
    return this.commands.filter((each) => each.kind === 'write' && each.key === key)
  }

  /** Whether a process has read one of the keys that begin so. */
  hasRead(process: string, prefix: string): boolean {
    return this.commands.some(
      (each) => each.kind === 'read' && each.process === process && each.key.startsWith(prefix),
    )
  }

  /** The writes of a user's record up to a time, the first one first. */
  recordsOf(
    username: string,
    to: number,
  ): { readonly process: string; readonly at: number; readonly record: StoredUser }[] {
    return this.commands.flatMap(({ at, kind, key, value, process }) => {
      if (kind !== 'write' || at > to || value === undefined || !isUserKey(key)) return []
      const record = this.#recordIn(value)
      return record.username === username ? [{ process, at, record }] : []
    })
  }

  #recordIn(text: string): StoredUser {
    const known = this.#parsed.get(text)
    if (known !== undefined) return known
    const record: StoredUser = JSON.parse(text)
    this.#parsed.set(text, record)
    return record
  }

  [Symbol.dispose](): void {
    this.#monitor.disconnect()
  }

  #note(at: number, process: string, [command = '', ...args]: readonly string[]): void {
    const note = (kind: StoreCommand['kind'], key: string, value: string | undefined) => {
      if (kind === 'write' && value !== undefined) this.#values.set(key, value)
      this.commands.push({ at, process, kind, key, value })
    }
    if (command === 'get') {
      const [key = ''] = args
      note('read', key, this.#values.get(key))
    } else if (command === 'set') {
      const [key = '', value = '', ...options] = args
      if (!options.includes('NX') || !this.#values.has(key)) note('write', key, value)
    } else if (command === 'eval') {
      // The store's only script: writes the second value where the first one stands.
      const [, , key = '', expected, value = ''] = args
      if (this.#values.get(key) === expected) note('write', key, value)
    }
  }
}

/** What a Redis keeps if no process writes it again: records, of which users who were removed have none, and the index. */
export async function keptUsers(url: string): Promise<{ records: StoredUser[]; index: Set<string> }> {
  const redis = new Redis(url)
  try {
    const keys = (await redis.keys('kept:*')).filter(isUserKey)
    const stored = await Promise.all(keys.map(async (key) => [await redis.get(key), await redis.pttl(key)]))
    const shards = (await redis.keys('kept:members:*')).map(async (key) =>
      JSON.parse(String(await redis.get(key))),
    )
    return {
      records: stored.flatMap(([text, ttlMs]) => (ttlMs === -1 ? [JSON.parse(String(text))] : [])),
      index: new Set((await Promise.all(shards)).flat()),
    }
  } finally {
    redis.disconnect()
  }
}

function isUserKey(key: string): boolean {
  return key.startsWith('kept:user:')
}
