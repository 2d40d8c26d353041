/** One pass over the roster at full rate. */
import type { Circuit } from './circuit.js'
import type { KeeperProblem, SweepProgress, SweepReport } from './keeper-types.js'
import { delay } from './timing.js'
import { slotOf, type UserRecord } from './user-record.js'
import type { Visit, Visitor } from './visit.js'

export interface PassParts {
  readonly visitor: Visitor
  readonly circuit: Circuit
  readonly concurrency: number
  /** Before a record is looked at. */
  readonly absorb: (record: UserRecord) => void
  /** The target of the present configuration. */
  readonly target: () => number | undefined
  readonly problems: () => KeeperProblem[]
  /** After each visit, for what comes of it later. */
  readonly onVisited: (record: UserRecord, visit: Visit) => void
}

export interface PassOptions {
  /** Who is to be visited, those to be removed included. */
  readonly users: readonly UserRecord[]
  /** A proof that was sent since then is enough; monotonic. */
  readonly provenSince: number
  /** Names of the roster for whom there is no record, because the pass did not get to them. */
  readonly onProgress: (progress: SweepProgress) => void
  /** Whether to visit nobody else. */
  readonly isOver: () => boolean
}

/** How long a pass waits for the end of an outage. */
const patienceMs = 60_000

/** Visits everybody, a few at a time, each once. */
export async function runPass(parts: PassParts, options: PassOptions): Promise<SweepReport> {
  const users = unmetFirst(options.users)
  const wanted = users.filter((record) => !record.isRemoved).length
  const counts = { created: 0, restored: 0, removed: 0 }
  const failed: { username: string; error: unknown }[] = []
  let active = 0
  let next = 0
  let done = 0
  let patientUntil: number | undefined

  /** In an outage everybody waits for the test of another: for a minute in all, not for as long as the outage lasts. */
  async function visitPatiently(record: UserRecord): Promise<Visit> {
    for (;;) {
      const visit = await visitOnce(parts, record, options.provenSince)
      if (visit.end !== 'held') return visit
      const now = performance.now()
      patientUntil ??= now + patienceMs
      if (now >= patientUntil || options.isOver()) return visit
      await delay(Math.min(5_000, Math.max(100, parts.circuit.nextCallAt - now)))
    }
  }

  async function work(): Promise<void> {
    for (let record = users[next++]; record !== undefined && !options.isOver(); record = users[next++]) {
      const visit = await visitPatiently(record)
      parts.onVisited(record, visit)
      if (visit.created) counts.created++
      if (visit.restored) counts.restored++
      if (visit.removed) counts.removed++
      const problem = problemOf(record, visit, parts.target())
      if (problem !== undefined) failed.push({ username: record.username, error: problem })
      else if (!record.isRemoved) active++
      done++
      options.onProgress({ done, total: users.length, ...counts, failed: failed.length })
    }
  }
  await Promise.all(Array.from({ length: Math.min(parts.concurrency, users.length) }, work))
  for (const { username } of users.slice(next)) failed.push({ username, error: new Error(stoppedMessage) })
  return { wanted, active, ...counts, failed, problems: parts.problems() }
}

/** Who waits for a subscription, or for the end of one, comes before those who have theirs. */
function unmetFirst(records: readonly UserRecord[]): UserRecord[] {
  const unmet: UserRecord[] = []
  const met: UserRecord[] = []
  for (const record of records) {
    const hasAll = !record.isRemoved && record.slots.some(({ id, isGone }) => id !== undefined && !isGone)
    ;(hasAll ? met : unmet).push(record)
  }
  return unmet.concat(met)
}

async function visitOnce(
  { absorb, visitor }: PassParts,
  record: UserRecord,
  provenSince: number,
): Promise<Visit> {
  // Somebody else's visit may have begun before this pass.
  for (let other = visitor.underWayOf(record); other; other = visitor.underWayOf(record)) await other
  absorb(record)
  return visitor.visit(record, { wantsProof: record.provenSince < provenSince, repeats: true })
}

const stoppedMessage = 'The keeper was stopped before the pass came to this user.'

/** What stands between this user and a subscription, or the end of one. */
function problemOf(record: UserRecord, visit: Visit, target: number | undefined): unknown {
  if (visit.end === 'settled') return undefined
  if (visit.end === 'aborted') return new Error('Another process has taken over, or the keeper was stopped.')
  if (visit.end !== 'waiting')
    return visit.error ?? new Error('It was not tried: the next pass comes back to it.')
  const slot = target === undefined ? undefined : slotOf(record, target)
  const isThere = slot?.id !== undefined && !slot.isGone && slot.doubt !== 'unanswered'
  if (isThere && !record.isRemoved && visit.error === undefined) return undefined
  if (visit.error !== undefined) return visit.error
  if (record.error !== undefined) return record.error
  const seconds = Math.max(0, Math.ceil(((visit.until ?? 0) - performance.now()) / 1_000))
  return new Error(
    record.isRemoved || slot?.doubt === 'unanswered'
      ? `An earlier request was not answered and may still take effect: a pass in ${seconds} s or later settles that.`
      : `Restored before, and no delivery has come since: the next restore is tried in ${seconds} s.`,
  )
}
