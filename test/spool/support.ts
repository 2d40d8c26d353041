/** A folder for a spool, deliveries for it, and how to wait for what it does. */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Delivery } from 'notification-subscriber'
import { type DeadLetter, DeliverySpool, type DeliverySpoolOptions } from 'notification-subscriber/spool'
import { openParts } from '../../src/spool/delivery-spool.js'
import type { SpoolFiles } from '../../src/spool/folder.js'

/** A new folder, gone with everything in it when the scope is left; `path` is one in it that does not exist yet. */
export async function spoolFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'spool-'))
  return {
    path: join(folder, 'spool'),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

export function numbered(id: number | string, payload: Record<string, unknown> = {}): Delivery {
  return {
    subscriptionId: 1,
    notification: { id: `n${id}`, time: 1, ver: '1.0', type: 'cxScoreUpdated', payload },
  }
}

export function idsOf(deliveries: readonly Delivery[]): string[] {
  return deliveries.map(({ notification }) => notification.id)
}

export function keep(spool: DeliverySpool, delivery: Delivery): Promise<void> {
  return spool.keep(delivery.notification, { delivery })
}

/** A spool that logs nothing, unless the options say otherwise. */
export function openSpool(options: DeliverySpoolOptions): Promise<DeliverySpool> {
  return DeliverySpool.open({ logger: false, ...options })
}

/** A spool on files that fail, wait or take notes. */
export async function openSpoolOn(options: DeliverySpoolOptions, files: SpoolFiles): Promise<DeliverySpool> {
  return Reflect.construct(DeliverySpool, [await openParts({ logger: false, ...options }, files)])
}

/** What a `deliver` gets, and a promise that it returns until a test settles it. */
export function recorder(deliver: (delivery: Delivery) => unknown = () => {}) {
  const delivered: Delivery[] = []
  return {
    delivered,
    deliver: (delivery: Delivery) => {
      delivered.push(delivery)
      return deliver(delivery)
    },
  }
}

const { setTimeout: setRealTimeout } = globalThis

/** Passes real time, whatever timers a test replaces. */
export function realTime(ms: number): Promise<void> {
  return new Promise((resolve) => setRealTimeout(resolve, ms))
}

/** Resolves when the condition holds. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await realTime(2)
}

export async function lettersOf(spool: Pick<DeliverySpool, 'deadLetters'>): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = []
  for await (const letter of spool.deadLetters()) letters.push(letter)
  return letters
}

/** Mounts on a path, or says why a test checks nothing. */
export function mount(path: string, ...steps: (readonly string[])[]): boolean {
  try {
    for (const args of steps) execFileSync('mount', [...args, path], { stdio: 'ignore' })
    return true
  } catch {
    // CI runs as root.
    const isRoot = process.getuid?.() === 0
    console.warn(
      `Not checked: ${isRoot ? 'this container' : 'a user other than root'} may not mount anything.`,
    )
    return false
  }
}

export function unmount(path: string): void {
  execFileSync('umount', ['-l', path])
}
