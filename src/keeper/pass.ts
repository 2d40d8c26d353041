/** One pass at full rate: visits everybody who is wanted, and everybody who is wanted no longer. */
import type { SweepProgress, SweepReport } from './keeper-types.js'
import type { Keeping } from './keeping.js'
import type { Standing } from './tenure.js'
import { delay, leaseMs } from './timing.js'
import { slotOf, type UserRecord } from './user-record.js'
import type { Visit } from './visit.js'

/** A pass as it is asked for. */
export interface PassRequest {
  /** `nobody`: everything is ended. */
  readonly wanted: 'roster' | 'nobody'
  readonly allowRemovals: boolean
  /** A proof that was sent since then is enough; monotonic. */
  readonly provenSince: number
  readonly onProgress: (progress: SweepProgress) => void
  /** Whether to visit nobody else. */
  readonly isOver: () => boolean
}

/** How long a pass waits for the end of an outage. */
const patienceMs = 60_000

/** Makes a pass if it is this process that works. Never rejects. */
export async function makePass(keeping: Keeping, request: PassRequest): Promise<SweepReport> {
  const { log, membership, outages, tenure } = keeping
  const standing = await takePart(keeping, request.isOver)
  const isTold = standing === 'at-work' || standing === 'blind'
  const isAsked = request.wanted === 'roster' && !request.isOver()
  const roster = isAsked ? await membership.askRoster({ isTold }) : undefined
  // The answer may have taken its time.
  if (standing !== 'at-work' || tenure.standing !== 'at-work') {
    return reportOfOthers(keeping, request.wanted, roster?.names)
  }
  if (request.wanted === 'nobody') membership.removeAll()
  else if (roster !== undefined) membership.applyRoster(roster, request.allowRemovals)
  keeping.isPassing = true
  const report = await visitEverybody(keeping, request).finally(() => {
    keeping.isPassing = false
  })
  outages.review(performance.now(), keeping.isWatching)
  await keeping.flush()
  const { wanted, active, created, restored, removed, failed } = report
  const counts = { wanted, active, created, restored, removed, failed: failed.length }
  log('info', counts, 'A pass over the roster is done')
  return report
}

/** Takes the work over if nobody does it: one who died is waited for until that is certain. */
async function takePart({ lease, tenure }: Keeping, isOver: () => boolean): Promise<Standing> {
  const startedSince = performance.now()
  for (;;) {
    const standing = await tenure.enter()
    const mayChange = standing === 'standing-by' && !lease.hasLivingHolder
    if (!mayChange || isOver() || performance.now() - startedSince > 2 * leaseMs) return standing
    await delay(5_000)
  }
}

/** Visits everybody, a few at a time, each once. */
async function visitEverybody(keeping: Keeping, request: PassRequest): Promise<SweepReport> {
  const { circuit, concurrency, problems, records } = keeping
  const users = unmetFirst(records.users.values())
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
      const visit = await visitOnce(keeping, record, request.provenSince)
      if (visit.end !== 'held') return visit
      const now = performance.now()
      patientUntil ??= now + patienceMs
      if (now >= patientUntil || request.isOver()) return visit
      await delay(Math.min(5_000, Math.max(100, circuit.nextCallFrom - now)))
    }
  }

  async function work(): Promise<void> {
    for (let record = users[next++]; record !== undefined && !request.isOver(); record = users[next++]) {
      const visit = await visitPatiently(record)
      if (visit.created) counts.created++
      if (visit.restored) counts.restored++
      if (visit.removed) counts.removed++
      const problem = problemOf(keeping, record, visit)
      if (problem !== undefined) failed.push({ username: record.username, error: problem })
      else if (!record.isRemoved) active++
      done++
      request.onProgress({ done, total: users.length, ...counts, failed: failed.length })
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, users.length) }, work))
  for (const { username } of users.slice(next)) failed.push({ username, error: new Error(stoppedMessage) })
  return { wanted, active, ...counts, failed, problems: problems.list() }
}

/** Who waits for a subscription, or for the end of one, comes before those who have theirs. */
function unmetFirst(records: Iterable<UserRecord>): UserRecord[] {
  const unmet: UserRecord[] = []
  const met: UserRecord[] = []
  for (const record of records) (hasSubscription(record) && !record.isRemoved ? met : unmet).push(record)
  return unmet.concat(met)
}

function hasSubscription(record: UserRecord | undefined): boolean {
  return record?.slots.some(({ id, isGone }) => id !== undefined && !isGone) === true
}

async function visitOnce(
  { intake, visitor }: Keeping,
  record: UserRecord,
  provenSince: number,
): Promise<Visit> {
  // Somebody else's visit may have begun before this pass.
  for (let other = visitor.inFlightOf(record); other; other = visitor.inFlightOf(record)) await other
  intake.absorb(record)
  return visitor.visit(record, { wantsProof: record.provenSince < provenSince, repeats: true })
}

const stoppedMessage = 'The keeper was stopped before the pass came to this user.'
const untriedMessage = 'This user was not tried: the next pass comes back to them.'
const withoutStoreMessage =
  'The store fails: until it works again nobody is replaced or unsubscribed, and nobody new is subscribed.'
const inTheWayMessage = 'Another subscription for this user, type and callback URL is in the way.'

/** What stands between this user and a subscription, or the end of one. */
function problemOf({ store, tenure }: Keeping, record: UserRecord, visit: Visit): unknown {
  if (visit.end === 'settled') return undefined
  if (visit.end === 'aborted') return new Error('Another process has taken over, or the keeper was stopped.')
  if (visit.end === 'conflict') return new Error(inTheWayMessage)
  if (visit.end !== 'waiting') return visit.error ?? new Error(untriedMessage)
  if (visit.error !== undefined) return visit.error
  const target = tenure.generation?.target
  const slot = target === undefined ? undefined : slotOf(record, target)
  const isThere = slot?.id !== undefined && !slot.isGone && slot.doubt !== 'unanswered'
  if (isThere && !record.isRemoved) return undefined
  if (!store.isWorking) return new Error(withoutStoreMessage)
  const seconds = Math.max(0, Math.ceil((record.dueFrom - performance.now()) / 1_000))
  return new Error(
    record.isRemoved || slot?.doubt === 'unanswered'
      ? `An earlier request was not answered and may still take effect: a pass in ${seconds} s or later settles that.`
      : `Restored before, and no delivery has come since: the next restore is tried in ${seconds} s.`,
  )
}

/** Of a pass that another process makes, or nobody. */
function reportOfOthers(
  { problems, records, tenure }: Keeping,
  wanted: PassRequest['wanted'],
  roster: ReadonlySet<string> | undefined,
): SweepReport {
  const names = [...(roster ?? records.users.keys())]
  const message = otherMessages[wanted][tenure.standing]
  const failing = names.filter(
    (username) => wanted === 'nobody' || !hasSubscription(records.users.get(username)),
  )
  return {
    wanted: wanted === 'nobody' ? 0 : names.length,
    active: names.length - failing.length,
    created: 0,
    restored: 0,
    removed: 0,
    failed: failing.map((username) => ({ username, error: new Error(message) })),
    problems: problems.list(),
  }
}

const otherMessages: Record<PassRequest['wanted'], Record<Standing, string>> = {
  roster: {
    'at-work': 'This process has only just taken over: it subscribes this user at its next pass.',
    'standing-by': 'Another process keeps the roster: it subscribes this user at its next pass.',
    superseded: 'Another process runs a newer configuration: it subscribes this user at its next pass.',
    blind: 'The store cannot be read: nobody new is subscribed until it can.',
  },
  nobody: {
    'at-work': 'This process has only just taken over: call `unsubscribeAll` again.',
    'standing-by':
      'Another process keeps the roster: stop that one first, and then call `unsubscribeAll` again.',
    superseded:
      'Another process runs a newer configuration: stop that one first, and call `unsubscribeAll` there.',
    blind: 'The store cannot be read: nobody is unsubscribed until it can.',
  },
}
