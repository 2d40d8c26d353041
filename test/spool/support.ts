/** A folder for a spool, deliveries for it, and how to wait for what it does. */
import * as fs from 'node:fs/promises'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  ConfigurationError,
  type Delivery,
  DeliveryReceiver,
  type DeliveryReceiverOptions,
  InvalidDeliveryError,
} from 'notification-subscriber'
import {
  type DeadLetter,
  DeliverySpool,
  type DeliverySpoolOptions,
  type PayloadSchemas,
} from 'notification-subscriber/spool'
import { expect, vi } from 'vitest'
import type { SpoolFiles } from '../../src/spool/folder.js'
import { type EntryState, lineOf, nameOf } from '../../src/spool/format.js'
import { openStore } from '../../src/spool/spool-store.js'
import { createDeliveryParser } from '../../src/webhooks/parse.js'
import type { NoPayloadSchemas } from '../../src/webhooks/schemas.js'
import { recordingLogger } from '../support/recording-logger.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { testWith } from '../support/test-with.js'

/** A new folder of a spool that does not exist yet, gone with everything in it when the scope is left. */
export async function spoolFolder() {
  const parent = await temporaryFolder()
  const path = join(parent.path, 'spool')
  const damages: { readonly file: string; readonly offset?: number }[] = []
  const ignore = () => {}
  const error = ({ event, ...damage }: { event?: string; file?: string }) => {
    if (event === 'spool.damaged') damages.push({ file: '', ...damage })
  }
  const logger = { debug: ignore, info: ignore, warn: ignore, error }
  const open = <Payloads extends PayloadSchemas>(
    options: Partial<DeliverySpoolOptions<Payloads>> = {},
    files?: SpoolFiles,
  ) => openSpool({ path, logger, ...options }, files)
  return {
    path,
    damages,
    /** Opens a spool that logs nothing and does nothing with deliveries, unless the options say otherwise. */
    open,
    /** Keeps deliveries that an earlier process did not finish, in one segment. */
    async leave(...deliveries: readonly Delivery[]): Promise<void> {
      const spool = await open({ deliver: never })
      for (const delivery of deliveries) await keep(spool, delivery)
      await spool.close({ timeoutMs: 0 })
    },
    /** Makes the folder if it is not there, and writes a file of an earlier process into it. */
    async put({ name, content }: { readonly name: string; readonly content: string | Buffer }) {
      await fs.mkdir(path, { recursive: true, mode: 0o700 })
      await fs.writeFile(join(path, name), content)
    },
    /** The ids of the deliveries that the next process delivers until none is left. */
    async drain(options: Partial<DeliverySpoolOptions> = {}, files?: SpoolFiles): Promise<string[]> {
      const { deliver, delivered } = recorder()
      await using spool = await open({ ...options, deliver }, files)
      await until(() => spool.size === 0)
      return idsOf(delivered)
    },
    /** The files in it, sorted: without the lock, or those whose names match. */
    async names(pattern = /(?<!\.lock)$/): Promise<string[]> {
      return (await readdir(path)).filter((name) => pattern.test(name)).toSorted()
    },
    /** The path of the lock, while a spool is open. */
    async lock(): Promise<string> {
      const [name = ''] = (await readdir(path)).filter((name) => name.endsWith('.lock'))
      return join(path, name)
    },
    [Symbol.asyncDispose]: () => parent[Symbol.asyncDispose](),
  }
}

/** A test that gets a folder of its own. */
export const test = testWith(spoolFolder)

/** A spool that logs nothing and does nothing with deliveries, on the real files or on some that fail, wait or take notes. */
export async function openSpool<Payloads extends PayloadSchemas = NoPayloadSchemas>(
  given: Partial<DeliverySpoolOptions<Payloads>> & { readonly path: string },
  files?: SpoolFiles,
): Promise<DeliverySpool<Payloads>> {
  const options = { deliver: () => {}, logger: false as const, ...given }
  if (files === undefined) return DeliverySpool.open(options)
  const parser = createDeliveryParser({ payloads: given.payloads ?? {} })
  return Reflect.construct(DeliverySpool, [await openStore(options, files), parser, options])
}

export const never = () => new Promise<never>(() => {})

const token = 'a-secret-of-tests'

export function keepInvalid(spool: Pick<DeliverySpool, 'keepInvalid'>, body: unknown): Promise<void> {
  return spool.keepInvalid(
    new InvalidDeliveryError('no', { issues: [{ path: ['x', 0], message: 'm' }], body }),
  )
}

/** The status of the answer to a callback, by a receiver that keeps deliveries in the spool. */
export async function callBack(
  spool: Pick<DeliverySpool, 'keep'>,
  body: unknown,
  options: Pick<
    DeliveryReceiverOptions<PayloadSchemas>,
    'ackTimeoutMs' | 'onError' | 'onInvalid' | 'payloads'
  > = {},
): Promise<number> {
  const receiver = new DeliveryReceiver({ secrets: { token }, logger: false, ...options }).onAny(spool.keep)
  return (await receiver.handle({ method: 'POST', headers: { token }, body })).status
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

export function keep(spool: Pick<DeliverySpool, 'keep'>, delivery: Delivery): Promise<void> {
  return spool.keep(delivery.notification, { delivery })
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

export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await realTime(2)
}

/** Does work in virtual time, which passes as fast as the disk allows: no repetition takes its wait. */
export async function inVirtualTime(work: () => Promise<void>): Promise<void> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
  let isDone = false
  const done = work().finally(() => {
    isDone = true
  })
  while (!isDone) {
    await vi.advanceTimersByTimeAsync(100)
    await realTime(2)
  }
  vi.useRealTimers()
  await done
}

/** A logger, and the fields of its lines with such an event. */
export function eventLog(pattern = /./) {
  const { lines, ...logger } = recordingLogger()
  const fields = () => lines.map(({ fields: line }): { readonly event?: string } => line)
  return { logger, logged: () => fields().filter(({ event = '' }) => pattern.test(event)) }
}

/** The id of the only dead letter. */
export async function letterIdOf(spool: Pick<DeliverySpool, 'deadLetters'>): Promise<number> {
  const letters = await lettersOf(spool)
  expect(letters).toHaveLength(1)
  return letters[0]?.id ?? 0
}

export async function lettersOf(spool: Pick<DeliverySpool, 'deadLetters'>): Promise<DeadLetter[]> {
  const letters: DeadLetter[] = []
  for await (const letter of spool.deadLetters()) letters.push(letter)
  return letters
}

/** As `process.platform` says on Windows, where no file has a user. */
export async function onWindows(work: () => Promise<void>): Promise<void> {
  const { platform, getuid } = process
  Object.defineProperty(process, 'platform', { value: 'win32' })
  Object.defineProperty(process, 'getuid', { value: undefined, configurable: true, writable: true })
  try {
    await work()
  } finally {
    Object.defineProperty(process, 'platform', { value: platform })
    Object.defineProperty(process, 'getuid', { value: getuid, configurable: true, writable: true })
  }
}

export async function refusalOf(path: string): Promise<ConfigurationError> {
  const error = await openSpool({ path }).catch((reason) => reason)
  expect(error).toBeInstanceOf(ConfigurationError)
  return error
}

interface Faults {
  /** Called before each operation, with its name, the file, and its arguments: may throw, or wait. */
  before?(operation: string, file: string, args: readonly unknown[]): unknown
}

/** The real files, with something before each operation. */
export function filesWith(faults: Faults): SpoolFiles {
  const wrap =
    <Args extends readonly unknown[], T>(operation: string, run: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      await faults.before?.(operation, String(args[0]), args)
      return run(...args)
    }
  const open = async (...args: Parameters<typeof fs.open>) => {
    const path = String(args[0])
    const handle = await wrap('open', fs.open)(...args)
    return new Proxy(handle, {
      get(target, property) {
        const value = Reflect.get(target, property, target)
        if (typeof value !== 'function') return value
        return async (...given: unknown[]) => {
          // A close that fails has closed the file all the same.
          if (property === 'close') await target.close()
          await faults.before?.(String(property), path, given)
          return property === 'close' ? undefined : value.apply(target, given)
        }
      },
    })
  }
  return {
    open,
    readdir: wrap('readdir', fs.readdir) as typeof fs.readdir,
    readFile: wrap('readFile', fs.readFile) as typeof fs.readFile,
    rename: wrap('rename', fs.rename),
    unlink: wrap('unlink', fs.unlink),
    writeFile: wrap('writeFile', fs.writeFile),
  }
}

/** A disk on which operations fail while the disk is broken, on files whose paths match. */
export function diskThatFailsTo(operations: string | readonly string[], file = /./, code = 'EIO') {
  const disk = { isBroken: true, failures: 0, files: filesWith({ before: failTo }) }
  function failTo(name: string, path: string): void {
    if (!disk.isBroken || ![operations].flat().includes(name) || !file.test(path)) return
    disk.failures += 1
    throw Object.assign(new Error(`${code}: as the test says`), { code })
  }
  return disk
}

/** A segment that an earlier process left, with these deliveries. */
export function segmentOf(
  id: number,
  deliveries: readonly (Delivery & { readonly state?: EntryState })[],
  kind: 'open' | 'closed' = 'closed',
) {
  const lines = deliveries.map(({ state, ...delivery }, index) =>
    lineOf(id, { id: id + 1 + index, receivedAt: 5, text: JSON.stringify(delivery) }, state),
  )
  const content = Buffer.from(lines.join(''))
  const [count, size] = kind === 'open' ? [0, 0] : [deliveries.length, content.length]
  const name = nameOf({ kind, id, lastId: id + count, count, size, oldestAt: 5 })
  return { name, content, lines }
}
