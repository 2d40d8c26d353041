/** What stood in Redis at any time, and which process wrote and read it, as Redis' own MONITOR tells. */
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

/** A user's record in the store, by its short names. */
export interface StoredUser {
  readonly u: string
  readonly x?: 1
  readonly s: readonly { readonly i?: number; readonly doubt?: 1 | 2 }[]
}

export interface StoredChunk {
  readonly by: string
  readonly records: readonly StoredUser[]
}

export class StoreHistory implements Disposable {
  readonly commands: StoreCommand[] = []
  readonly #monitor: Redis
  readonly #values = new Map<string, string>()
  readonly #parsed = new Map<string, ReadonlyMap<string, StoredUser>>()

  private constructor(monitor: Redis, processOf: (source: string) => string | undefined) {
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
      return new StoreHistory(await redis.monitor(), processOf)
    } finally {
      redis.disconnect()
    }
  }

  /** Every write of a key that took place, the first one first. */
  writesOf(key: string): StoreCommand[] {
    return this.commands.filter((each) => each.kind === 'write' && each.key === key)
  }

  /** What stands in the store now. */
  get values(): ReadonlyMap<string, string> {
    return this.#values
  }

  /** What the store said of a user from one time to another: as it was then, and after each write since. */
  recordsOf(username: string, from: number, to: number): (StoredUser | undefined)[] {
    const chunks = new Map<string, string | undefined>()
    const find = () => {
      for (const text of chunks.values()) {
        const record = text === undefined ? undefined : this.usersIn(text).get(username)
        if (record !== undefined) return record
      }
      return undefined
    }
    const found: (StoredUser | undefined)[] = []
    let hasBegun = false
    for (const { at, kind, key, value } of this.commands) {
      if (at > to) break
      if (kind !== 'write' || !isChunk(key)) continue
      if (at > from && !hasBegun) {
        found.push(find())
        hasBegun = true
      }
      chunks.set(key, value)
      if (hasBegun) found.push(find())
    }
    return hasBegun ? found : [find()]
  }

  /** What a process has read of a user in that time. */
  recordsReadBy(process: string, username: string, from: number, to: number): StoredUser[] {
    return this.commands.flatMap(({ at, kind, key, value, process: reader }) => {
      const isMeant = kind === 'read' && reader === process && isChunk(key) && at > from && at <= to
      const record = isMeant && value !== undefined ? this.usersIn(value).get(username) : undefined
      return record === undefined ? [] : [record]
    })
  }

  /** The users in what stands under a chunk's key. */
  usersIn(text: string): ReadonlyMap<string, StoredUser> {
    let users = this.#parsed.get(text)
    if (users === undefined) {
      const { records }: StoredChunk = JSON.parse(text)
      users = new Map(records.map((record) => [record.u, record]))
      this.#parsed.set(text, users)
    }
    return users
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

export function isChunk(key: string): boolean {
  return key.startsWith('kept:chunk:')
}
