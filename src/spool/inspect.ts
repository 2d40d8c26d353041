/** What is in the folder of a spool, also while a process has it open. Changes nothing. */
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import { type DeadLetter, letterIn } from './dead-letters.js'
import { ifGone } from './folder.js'
import { parseName, placesIn } from './format.js'

export interface SpoolContents {
  /** How many deliveries wait. */
  readonly waiting: number
  /** When the oldest of them was received, in milliseconds since 1970; `undefined` if none waits. */
  readonly oldestReceivedAt: number | undefined
  /** The oldest first. */
  readonly letters: readonly DeadLetter[]
  /** The names of damaged dead letters. Damage of a delivery is not told from a line that is being written. */
  readonly damaged: readonly string[]
}

/** @throws the system's error if the folder or a file cannot be read */
export async function inspectFolder(path: string): Promise<SpoolContents> {
  const receivedAt: number[] = []
  const letters: DeadLetter[] = []
  const damaged: string[] = []
  const seen = new Set<number>()
  // The second look finds what the process renamed during the first.
  for (const _look of [1, 2]) {
    for (const name of (await fs.readdir(path)).sort()) {
      const fields = parseName(name)
      if (typeof fields !== 'object' || seen.has(fields.id)) continue
      const bytes = await fs.readFile(join(path, name)).catch(ifGone(undefined))
      if (bytes === undefined) continue
      seen.add(fields.id)
      const { id, kind, size } = fields
      if (kind === 'open' || kind === 'closed') {
        const { places } = placesIn(kind === 'open' ? bytes : bytes.subarray(0, size), id)
        for (const place of places) receivedAt.push(place.receivedAt)
      } else {
        const { letter } = letterIn(bytes, fields)
        if (letter) letters.push(letter)
        else damaged.push(name)
      }
    }
  }
  const oldest = receivedAt.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)
  return {
    waiting: receivedAt.length,
    oldestReceivedAt: receivedAt.length > 0 ? oldest : undefined,
    letters,
    damaged,
  }
}
