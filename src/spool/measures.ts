/** How much of the file is in use, by the statistics that LMDB keeps anyway. */
import type { Database } from 'lmdb'

/** What is on the disk, in bytes. */
export interface Measures {
  /** What the waiting deliveries take, which counts for `maxBytes`. */
  readonly waitingBytes: number
  /** What all pages in use take. */
  readonly usedBytes: number
  /** What the file takes up to the last page that was ever in use. */
  readonly endBytes: number
}

interface PageStats {
  readonly entryCount: number
  readonly treeBranchPageCount: number
  readonly treeLeafPageCount: number
  readonly overflowPages: number
  readonly pageSize: number
}

/** What lmdb tells of one database and, in the last three fields, of the file. */
interface Stats extends PageStats {
  readonly lastPageNumber: number
  readonly root: PageStats
  readonly free: PageStats
}

/** How many pages of the file are headers. */
const headerPages = 2

/** Measures the file that these databases share. What those of `waiting` hold counts for `maxBytes`. */
export function measure(waiting: readonly Database[], others: readonly [Database, ...Database[]]): Measures {
  const { pageSize, lastPageNumber, root, free } = statsOf(others[0])
  const waitingBytes = sumOf(waiting)
  const houseBytes = sizeOfPages(root) + sizeOfPages(free) + headerPages * pageSize
  return {
    waitingBytes,
    usedBytes: waitingBytes + sumOf(others) + houseBytes,
    endBytes: (lastPageNumber + 1) * pageSize,
  }
}

/** How many entries a database has. */
export function countOf(db: Database): number {
  return statsOf(db).entryCount
}

/** What a database takes of the file, in bytes. */
export function bytesOf(db: Database): number {
  return sizeOfPages(statsOf(db))
}

function sizeOfPages({ treeBranchPageCount, treeLeafPageCount, overflowPages, pageSize }: PageStats): number {
  return (treeBranchPageCount + treeLeafPageCount + overflowPages) * pageSize
}

/** The statistics that LMDB keeps anyway; lmdb declares them as any object. */
function statsOf(db: Database): Stats {
  return db.getStats() as Stats
}

function sumOf(dbs: readonly Database[]): number {
  return dbs.reduce((sum, db) => sum + bytesOf(db), 0)
}
