/**
 * What no request of a keeper may ever be, whatever happens: read afterwards from the emulator's record of requests and
 * from Redis' record of writes. Times are by our clock, in milliseconds.
 */
import { fastMs } from './fast-time.js'
import { keeperLimits } from './keeper-limits.js'
import type { KeeperCall, KeeperReport, ProcessLife, Span } from './keeper-processes.js'
import type { KeeperRequest } from './keeper-requests.js'
import type { StoreHistory } from './store-history.js'

/** A subscription whose id a process got. */
export type Made = Extract<KeeperReport, { kind: 'made' }>

export interface Records {
  readonly requests: readonly KeeperRequest[]
  readonly calls: readonly KeeperCall[]
  readonly made: readonly Made[]
  readonly store: StoreHistory
  readonly lives: readonly ProcessLife[]
  /** When processes reported that the store fails, and that it works again. */
  readonly storeProblems: readonly (Span & { readonly process: string })[]
  /** Of a username, or the id of a subscription. */
  usernameOf(subject: string | number): string
  /** When each user stood on the roster. */
  readonly wanted: ReadonlyMap<string, readonly Span[]>
}

/** The configuration is read this often. */
const configurationReadMs = fastMs(30_000)
/** A claim that has not changed for this long was left behind. */
const claimStaleMs = fastMs(120_000)
/** A request follows its claim within this time, or is claimed again. */
const claimFreshMs = fastMs(10_000)
/** After this time the answer to a call is given up. */
const callTimeoutMs = fastMs(30_000)
/** Between a decision and what others see of it a busy machine may let this much pass. */
const graceMs = 1_000
/** Within an interval every user comes through the limiter. */
export const madeMs = fastMs(60_000)
/** Stamps are whole milliseconds, of two clocks. */
const stampMs = 2
/** In this time the roster is read at least twice, also by a process that was just started. */
export const rosterMs = fastMs(60_000) * 4

/** @returns what was wrong, in a sentence each */
export function violations(records: Records): string[] {
  const rules = new Rules(records)
  return [
    ...records.requests.flatMap((request) => rules.request(request)),
    ...records.calls.flatMap((call) => rules.call(call)),
    ...records.lives.flatMap((life) => rules.load(life)),
    ...records.made.flatMap((made) => rules.made(made)),
    ...rules.alone(),
  ]
}

class Rules {
  readonly #records: Records
  readonly #lives: ReadonlyMap<string, ProcessLife>
  /** When each configuration came to the store. */
  readonly #announced: readonly { readonly configuration: number; readonly at: number }[]

  constructor(records: Records) {
    this.#records = records
    this.#lives = new Map(records.lives.map((life) => [life.name, life]))
    this.#announced = records.store
      .writesOf('kept:configuration')
      .map(({ at, process }) => ({ configuration: this.#lives.get(process)?.configuration ?? 0, at }))
  }

  request(request: KeeperRequest): string[] {
    const { kind, process, username, subscriptionId, from } = request
    const rules: Record<string, boolean> = {
      'is of a user who is not kept here': !this.#records.wanted.has(username),
      'has the values of an earlier configuration': this.#isOutdated(request),
      'left long after its claim': this.#isLate(request),
      'ends what is wanted': kind === 'unsubscribe' && this.#isWanted(username, this.#sentBy(request)),
    }
    return Object.entries(rules).flatMap(([rule, isBroken]) => {
      return isBroken ? [`${process}: ${kind} ${subscriptionId ?? ''} ${username} at ${from} ${rule}`] : []
    })
  }

  /** When a call is made, what was written last about its user is a claim of this process that names the call. */
  call({ process, call, subject, at }: KeeperCall): string[] {
    const username = this.#records.usernameOf(subject)
    const last = this.#records.store.recordsOf(username, at + stampMs).at(-1)
    const problem =
      last?.process !== process || last.record.claim?.call !== call
        ? `${last?.process} wrote ${JSON.stringify(last?.record.claim)}`
        : at - last.at > claimFreshMs + stampMs && `its claim is ${Math.round(at - last.at)} ms old`
    return problem ? [`${process}: ${call} for ${username} at ${at}: ${problem}`] : []
  }

  /** Never are two requests for one user under way, by whatever process, nor one while an unanswered one may take effect. */
  alone(): string[] {
    const { requests } = this.#records
    return requests.flatMap((request) => {
      const other = requests.find(
        (each) =>
          each.username === request.username &&
          each.from < request.from &&
          this.#mayTakeEffectUntil(each) > this.#sentBy(request) + stampMs,
      )
      if (other === undefined) return []
      const first = `${other.kind} of ${other.process} at ${other.from}`
      return [
        `${request.process}: ${request.kind} for ${request.username} at ${request.from} beside the ${first}`,
      ]
    })
  }

  /** Not more at a time than are allowed, and not more in any time. */
  load({ name }: ProcessLife): string[] {
    const own = this.#records.requests
      .filter((each) => each.process === name)
      .sort((one, other) => one.from - other.from)
    const { concurrency, maxRequestsPerSecond } = keeperLimits
    return own.flatMap((request, index) => {
      const inFlight = own.slice(0, index).filter((each) => this.#awaitedUntil(each) > request.from + stampMs)
      const problems = []
      if (inFlight.length + 1 > concurrency) problems.push(`${inFlight.length + 1} in flight`)
      // Of those that were sent earlier and arrive late, no more can be in flight than are allowed.
      const isBurst = own.slice(0, index).some(({ from }, earlier) => {
        const pauses = (request.from - from + stampMs) / fastMs(1_000 / maxRequestsPerSecond)
        return index - earlier + 1 > 2 * concurrency + 1 + pauses
      })
      if (isBurst) problems.push('too many in a short time')
      return problems.map((problem) => `${name}: ${problem} at ${request.from}`)
    })
  }

  /** Others count a claim as left behind after two minutes: by then its request has left, or never does. */
  #isLate(request: KeeperRequest): boolean {
    const sentBy = this.#sentBy(request)
    const claim = this.#records.store
      .recordsOf(request.username, sentBy)
      .findLast(({ process, record }) => process === request.process && record.claim?.call === request.kind)
    return claim !== undefined && sentBy - claim.at > claimStaleMs - claimFreshMs
  }

  #isOutdated({ process, from, kind }: KeeperRequest): boolean {
    const life = this.#lives.get(process)
    if (life === undefined || kind === 'unsubscribe') return false
    const newer = this.#announced.find(({ configuration }) => configuration > life.configuration)
    return newer !== undefined && Math.min(from, life.diedAt) > newer.at + configurationReadMs + 2 * graceMs
  }

  /** Who was not on the roster when it was read last is removed: it is read at least twice in this time. */
  #isWanted(username: string, at: number): boolean {
    const since = at - rosterMs
    return (this.#records.wanted.get(username) ?? []).some(({ from, to }) => from <= since && at <= to)
  }

  /** Until when others have to wait: for an answer that its sender did not get, until the claim is stale. */
  #mayTakeEffectUntil(request: KeeperRequest): number {
    const { status, to } = request
    const sentBy = this.#sentBy(request)
    const diedAt = this.#lives.get(request.process)?.diedAt ?? 0
    if (status !== undefined && to <= diedAt) return to
    return sentBy + claimStaleMs - claimFreshMs
  }

  /**
   * The id of what a process has made is in the store soon, unless the process dies, stands still or cannot write. Where
   * another call follows, it is written with the claim of that call, which waits for the limiter first.
   */
  made({ process, subscriptionId, at }: Made): string[] {
    const life = this.#lives.get(process)
    const end = at + madeMs
    const pauses = [...(life?.cuts ?? []), ...(life?.stops ?? [])]
    const isPaused = pauses.some((each) => each.from < end && at < each.to + graceMs)
    // What was learnt just before the store failed, or while it does, is forgotten, and the claim stays.
    const hasFailed = this.#records.storeProblems.some(
      (problem) => problem.process === process && problem.from < end && at < problem.to + graceMs,
    )
    if (life === undefined || life.diedAt <= end || isPaused || hasFailed) return []
    const username = this.#records.usernameOf(subscriptionId)
    const isStored = this.#records.store
      .recordsOf(username, end)
      .some(({ record }) => record.id === subscriptionId)
    return isStored
      ? []
      : [`${process}: the id ${subscriptionId} of ${username}, made at ${at}, was not stored`]
  }

  /** The sender gives up an answer 30 s after its call, which its connection is part of. */
  #awaitedUntil(request: KeeperRequest): number {
    const { calls, usernameOf } = this.#records
    const called = calls.findLast(
      ({ at, call, process, subject }) =>
        process === request.process &&
        call === request.kind &&
        at <= request.from + stampMs &&
        usernameOf(subject) === request.username,
    )
    return Math.min(request.to, (called?.at ?? request.from) + callTimeoutMs)
  }

  /** What arrives after a process has died was sent before. */
  #sentBy({ process, from }: KeeperRequest): number {
    return Math.min(from, this.#lives.get(process)?.diedAt ?? from)
  }
}
