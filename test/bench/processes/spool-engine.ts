/**
 * A spool without a receiver: how fast it keeps, delivers, opens and drains, and what is left of it. Beside it, queues on
 * lmdb and classic-level, as an app would write them without the package, and a file that is only written and synced.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ClassicLevel } from 'classic-level'
import { open as openLmdb } from 'lmdb'
import { DeliverySpool } from '../../../dist/spool/index.js'
import { deliveryOf } from '../deliveries.js'
import { serve } from '../processes.js'

type Deliver = () => unknown

interface Spool {
  readonly size: number
  keep(notification: unknown, context: { readonly delivery: object }): Promise<void>
  close(options: { readonly timeoutMs: number }): Promise<number>
}

interface KeepRun {
  readonly runMs: number
  readonly writers: number
  readonly isDelivering: boolean
}
interface DrainRun {
  readonly count: number
  readonly together: number
}

const [engine = 'ours'] = process.argv.slice(2)
// Not in memory: /tmp often is.
const folder = mkdtempSync(join(process.env.SPOOL_BENCH_FOLDER ?? tmpdir(), 'bench-spool-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const never = () => new Promise<never>(() => {})
let opened = 0
const text = 'x'.repeat(800)

function deliveryOf1Kb(id: number): object {
  const delivery = deliveryOf(id)
  return { ...delivery, notification: { ...delivery.notification, type: 'bench', payload: { text } } }
}

/** What a queue needs of a store: as durable as the spool, a delivery is kept when it is synced, and removed after `deliver`. */
interface Engine {
  readonly keys: number[]
  put(key: number, delivery: object): Promise<unknown>
  get(key: number): unknown
  remove(key: number): unknown
  close(): Promise<void>
}

const engines: Readonly<Record<string, (path: string) => Promise<Engine>>> = {
  async 'a queue on lmdb'(path) {
    const db = openLmdb<object, number>({ path })
    return {
      keys: [...db.getKeys()],
      async put(key, delivery) {
        await db.put(key, delivery)
        await db.flushed
      },
      get: (key) => db.get(key),
      remove: (key) => void db.remove(key),
      async close() {
        await db.flushed
        await db.close()
      },
    }
  },
  async 'a queue on classic-level'(path) {
    const db = new ClassicLevel<string, object>(path, { valueEncoding: 'json' })
    await db.open()
    const textOf = (key: number) => String(key).padStart(16, '0')
    const add = inGroups<{ type: 'put'; key: string; value: object }>((group) =>
      db.batch([...group], { sync: true }),
    )
    return {
      keys: (await db.keys().all()).map(Number),
      put: (key, value) => add({ type: 'put', key: textOf(key), value }),
      get: (key) => db.get(textOf(key)),
      remove: (key) => db.del(textOf(key)),
      close: () => db.close(),
    }
  },
  async 'a synced append'(path) {
    const file = await openFile(path, 'a')
    const add = inGroups<string>(async (group) => {
      await file.write(group.join(''))
      await file.datasync()
    })
    return {
      keys: [],
      put: (_key, delivery) => add(`${JSON.stringify(delivery)}\n`),
      get: () => undefined,
      remove: () => {},
      close: () => file.close(),
    }
  },
}

/** What arrives during a write shares the next one. */
function inGroups<Item>(write: (group: readonly Item[]) => Promise<void>): (item: Item) => Promise<void> {
  let group: Item[] = []
  let written: Promise<void> = Promise.resolve()
  return (item) => {
    if (group.length === 0) {
      const own: Item[] = []
      group = own
      written = written.then(() => {
        if (group === own) group = []
        return write(own)
      })
    }
    group.push(item)
    return written
  }
}

const open = async (path: string, deliver: Deliver): Promise<Spool> => {
  const openEngine = engines[engine]
  if (openEngine !== undefined) return queueOn(await openEngine(path), deliver)
  return DeliverySpool.open({ path, deliver, maxBytes: 2 ** 40, logger: false })
}

function queueOn(db: Engine, deliver: Deliver): Spool {
  const waiting = [...db.keys]
  let [last = 0] = [waiting.at(-1)]
  let size = waiting.length
  let running = 0
  const work = async () => {
    if (running >= 16) return
    running++
    for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
      await db.get(key)
      await deliver()
      await db.remove(key)
      size--
    }
    running--
  }
  for (const _ of waiting.slice(0, 16)) void work()
  return {
    get size() {
      return size
    },
    async keep(_notification, { delivery }) {
      const key = ++last
      await db.put(key, delivery)
      size++
      waiting.push(key)
      void work()
    },
    async close() {
      await db.close()
      return size
    },
  }
}

const settled = async (spool: Spool) => {
  while (spool.size > 0) await new Promise((resolve) => setTimeout(resolve, 5))
}

const functions = {
  /** Keeps for a time, with so many writers, and delivers meanwhile or not. */
  keepFor: async ({ runMs, writers, isDelivering }: KeepRun) => {
    const path = join(folder, `keep-${opened++}`)
    const spool = await open(path, isDelivering ? async () => {} : never)
    const times: number[] = []
    const startedAt = performance.now()
    let id = 0
    const write = async () => {
      while (performance.now() - startedAt < runMs) {
        const delivery = deliveryOf1Kb(id++)
        const beganAt = performance.now()
        await spool.keep(undefined, { delivery })
        times.push(performance.now() - beganAt)
      }
    }
    await Promise.all(Array.from({ length: writers }, write))
    if (isDelivering) await settled(spool)
    const elapsedMs = performance.now() - startedAt
    await spool.close({ timeoutMs: 0 })
    rmSync(path, { recursive: true })
    times.sort((a, b) => a - b)
    return { kept: times.length, elapsedMs, p99Ms: times[Math.floor(times.length * 0.99)] ?? Number.NaN }
  },
  /** Keeps so many, so many at the same time; then opens the folder again, and delivers all. */
  openAndDrain: async ({ count, together }: DrainRun) => {
    const path = join(folder, `drain-${opened++}`)
    const filling = await open(path, never)
    for (let id = 0; id < count; id += together) {
      const group = Array.from({ length: together }, (_, index) => deliveryOf1Kb(id + index))
      await Promise.all(group.map((delivery) => filling.keep(undefined, { delivery })))
    }
    await filling.close({ timeoutMs: 0 })
    let isGo = false
    let go = () => {}
    const gate = new Promise<void>((resolve) => (go = resolve))
    const beganAt = performance.now()
    const spool = await open(path, () => (isGo ? undefined : gate))
    const openMs = performance.now() - beganAt
    const drainingAt = performance.now()
    isGo = true
    go()
    await settled(spool)
    const drainMs = performance.now() - drainingAt
    await spool.close({ timeoutMs: 0 })
    const diskBytes = sizeOf(path)
    rmSync(path, { recursive: true })
    return { openMs, drainMs, diskBytes }
  },
}
export type SpoolEngineFunctions = typeof functions

/** What the folder and its files take of the disk, in bytes. */
function sizeOf(path: string): number {
  if (statSync(path).isFile()) return statSync(path).blocks * 512
  const files = readdirSync(path).map((file) => statSync(join(path, file)).blocks)
  return (statSync(path).blocks + files.reduce((sum, blocks) => sum + blocks, 0)) * 512
}

serve(functions)
