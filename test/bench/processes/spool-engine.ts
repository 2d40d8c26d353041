/**
 * A spool without a receiver: how fast it keeps, delivers, opens and drains. Beside it, a queue on lmdb, as an app would
 * write it without the package, and a file that is only written and synced.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { open as openFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open as openLmdb } from 'lmdb'
import { DeliverySpool } from '../../../dist/spool/index.js'
import { deliveryOf } from '../../webhooks/deliveries.js'
import { serve } from '../processes.js'
import type { AnswerTimes } from './callback-load.js'

type Deliver = () => unknown

interface Spool {
  readonly size: number
  keep(notification: unknown, context: { readonly delivery: object }): Promise<void>
  close(options: { readonly timeoutMs: number }): Promise<unknown>
}

interface KeepRun {
  readonly runMs: number
  readonly writers: number
  readonly isDelivering: boolean
}

// Not in memory: /tmp often is.
const folder = mkdtempSync(join(process.env.SPOOL_BENCH_FOLDER ?? tmpdir(), 'bench-spool-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const never = () => new Promise<never>(() => {})
const text = 'x'.repeat(800)

function deliveryOf1Kb(subscriptionId: number): object {
  return { ...deliveryOf('bench', { text }), subscriptionId }
}

const engines: Readonly<Record<string, (path: string, deliver: Deliver) => Promise<Spool>>> = {
  ours: async (path, deliver) => DeliverySpool.open({ path, deliver, maxBytes: 2 ** 40, logger: false }),
  /** As durable as the spool: a delivery is kept when it is synced, and removed after `deliver`. */
  async 'a queue on lmdb'(path, deliver) {
    const db = openLmdb<object, number>({ path })
    const waiting = [...db.getKeys()]
    let last = waiting.at(-1) ?? 0
    let size = waiting.length
    let running = 0
    const work = async () => {
      if (running >= 16) return
      running++
      for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
        db.get(key)
        await deliver()
        void db.remove(key)
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
        await db.flushed
        size++
        waiting.push(key)
        void work()
      },
      async close() {
        await db.flushed
        await db.close()
      },
    }
  },
  async 'a synced append'(path) {
    const file = await openFile(path, 'a')
    let group: string[] = []
    let written: Promise<void> = Promise.resolve()
    return {
      size: 0,
      keep(_notification, { delivery }) {
        // What arrives during a write shares the next one.
        if (group.length === 0) {
          const own: string[] = []
          group = own
          written = written.then(async () => {
            if (group === own) group = []
            await file.write(own.join(''))
            await file.datasync()
          })
        }
        group.push(`${JSON.stringify(delivery)}\n`)
        return written
      },
      close: () => file.close(),
    }
  },
}

let opened = 0
const newPath = () => join(folder, `${opened++}`)
const open = (path: string, deliver: Deliver) =>
  engines[process.argv[2] ?? 'ours']?.(path, deliver) as Promise<Spool>

const settled = async (spool: Spool) => {
  while (spool.size > 0) await new Promise((resolve) => setTimeout(resolve, 5))
}

const functions = {
  /** Keeps for a time, with so many writers, and delivers meanwhile or not. */
  keepFor: async (run: KeepRun): Promise<AnswerTimes> => {
    const path = newPath()
    const spool = await open(path, run.isDelivering ? async () => {} : never)
    const times: number[] = []
    const startedAt = performance.now()
    let id = 0
    const write = async () => {
      while (performance.now() - startedAt < run.runMs) {
        const delivery = deliveryOf1Kb(id++)
        const beganAt = performance.now()
        await spool.keep(undefined, { delivery })
        times.push(performance.now() - beganAt)
      }
    }
    await Promise.all(Array.from({ length: run.writers }, write))
    if (run.isDelivering) await settled(spool)
    const elapsedMs = performance.now() - startedAt
    await spool.close({ timeoutMs: 0 })
    rmSync(path, { recursive: true })
    times.sort((a, b) => a - b)
    return { answered: times.length, elapsedMs, p99Ms: times[Math.floor(times.length * 0.99)] ?? Number.NaN }
  },
  /** Keeps so many; then opens the folder again, and delivers all. */
  openAndDrain: async (count: number) => {
    const path = newPath()
    const filling = await open(path, never)
    for (let id = 0; id < count; id += 100) {
      const group = Array.from({ length: 100 }, (_, index) => deliveryOf1Kb(id + index))
      await Promise.all(group.map((delivery) => filling.keep(undefined, { delivery })))
    }
    await filling.close({ timeoutMs: 0 })
    let go = () => {}
    const gate = new Promise<void>((resolve) => (go = resolve))
    const beganAt = performance.now()
    const spool = await open(path, () => gate)
    const drainingAt = performance.now()
    go()
    await settled(spool)
    const drainMs = performance.now() - drainingAt
    await spool.close({ timeoutMs: 0 })
    rmSync(path, { recursive: true })
    return { openMs: drainingAt - beganAt, drainMs }
  },
}
export type SpoolEngineFunctions = typeof functions
serve(functions)
