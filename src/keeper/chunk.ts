/** Up to a hundred records that stand in the store under one key. */
import * as z from 'zod'
import { parseJson } from '../shared/parse-json.js'
import { storedRecordSchema, toStored } from './stored-record.js'
import type { UserRecord } from './user-record.js'

export interface Chunk {
  readonly index: number
  readonly records: UserRecord[]
  /** What stands in the store, as far as this process knows. */
  text: string | undefined
  /** Whether there is something to write. Proofs alone can wait. */
  isStale: boolean
  /** Whether somebody who waits for the next write needs to know that it stands in the store. */
  isReadBack: boolean
  /** The write in flight. */
  writing: Promise<void> | undefined
  /** A write that begins when the one in flight is over: everybody who asks meanwhile shares it. */
  nextWrite: Promise<void> | undefined
}

export const recordsPerChunk = 100

const chunkSchema = z.object({
  version: z.literal(1),
  /** The epoch of the process that wrote it. */
  by: z.string(),
  records: z.array(storedRecordSchema),
})

export function newChunk(index: number, text: string | undefined, records: UserRecord[] = []): Chunk {
  return { index, records, text, isStale: false, isReadBack: false, writing: undefined, nextWrite: undefined }
}

/** Where a chunk stands in the store. */
export function keyOf({ index }: Pick<Chunk, 'index'>): string {
  return `chunk:${index}`
}

export function textOf({ records }: Chunk, epoch: string | undefined): string {
  const now = performance.now()
  return JSON.stringify({
    version: 1,
    by: epoch ?? '',
    records: records.map((record) => toStored(record, now)),
  })
}

export function parseChunk(text: string): z.output<typeof chunkSchema> | undefined {
  return chunkSchema.safeParse(parseJson(text)).data
}

/** The record has changed: its chunk is written before long. One that has no chunk yet is written with its first. */
export function markStale({ chunk }: UserRecord): void {
  if (chunk !== undefined) chunk.isStale = true
}
