/**
 * What no request of a keeper and no write of it may ever be, whatever happens: judged afterwards, by the emulator's
 * record of requests and by Redis' record of reads and writes. Times are by our clock, in milliseconds.
 */
import { fastMs } from './fast-time.js'
import { keeperLimits } from './keeper-limits.js'
import type { KeeperCall, ProcessLife, Span } from './keeper-processes.js'
import type { KeeperRequest } from './keeper-requests.js'
import type { StoreCommand, StoredChunk, StoredUser, StoreHistory } from './store-history.js'

export interface Witnesses {
  readonly requests: readonly KeeperRequest[]
  readonly calls: readonly KeeperCall[]
  readonly store: StoreHistory
  readonly lives: readonly ProcessLife[]
  /** When each user stood on the roster. */
  readonly wanted: ReadonlyMap<string, readonly Span[]>
  /** When processes told that the store failed. */
  readonly storeFailures: ReadonlyMap<string, readonly Span[]>
}

const leaseMs = fastMs(60_000)
const heartbeatMs = fastMs(30_000)
const settlingMs = fastMs(120_000)
/** Between a decision and what others see of it a busy machine may let this much pass. */
const graceMs = 1_000
/** Stamps are whole milliseconds. */
const stampMs = 1

/** @returns what was wrong, in a sentence each */
export function violations(witnesses: Witnesses): string[] {
  const judge = new Judge(witnesses)
  return [
    ...witnesses.requests.flatMap((request) => judge.request(request)),
    ...witnesses.calls.flatMap((call) => judge.call(call)),
    ...witnesses.lives.flatMap((life) => judge.load(life)),
    ...judge.turns(),
    ...judge.chunks(),
  ]
}

class Judge {
  readonly #witnesses: Witnesses
  readonly #turns: readonly StoreCommand[]
  readonly #lives: ReadonlyMap<string, ProcessLife>
  /** When each configuration came to the store. */
  readonly #announced: readonly { readonly generation: number; readonly at: number }[]

  constructor(witnesses: Witnesses) {
    this.#witnesses = witnesses
    this.#turns = witnesses.store.writesOf('kept:lease')
    this.#lives = new Map(witnesses.lives.map((life) => [life.name, life]))
    this.#announced = witnesses.store
      .writesOf('kept:head')
      .map(({ at, value = '' }) => ({ generation: JSON.parse(value).generation, at }))
  }

  request(request: KeeperRequest): string[] {
    const { kind, process, username, subscriptionId, from } = request
    const rules: Record<string, boolean> = {
      'is of somebody who is not kept here': !this.#witnesses.wanted.has(username),
      'was not noted in the store before': !this.#isNoted(request),
      'has the values of an earlier configuration': this.#isOutdated(request),
      'ends what is wanted': kind === 'unsubscribe' && this.#isWanted(username, this.#sentBy(request)),
      'came before an earlier create could not take effect any more':
        kind === 'recreate' && this.#isUnsettled(request),
      'made a subscription whose id was not stored': !this.#isIdStored(request),
      'was not answered, and the store was not told': !this.#isDoubtStored(request),
    }
    return Object.entries(rules).flatMap(([rule, isBroken]) => {
      return isBroken ? [`${process}: ${kind} ${subscriptionId ?? ''} ${username} at ${from} ${rule}`] : []
    })
  }

  /** Without the turn nothing is sent, but for a plain create where the store fails. */
  call({ process, call, subject, at }: KeeperCall): string[] {
    const own = this.#turns.findLast((each) => each.process === process && each.at <= at + stampMs)
    if (own !== undefined && own.value !== 'free' && at - own.at <= leaseMs + stampMs) return []
    if (call === 'create' && this.#failureOf(process, at) !== undefined) return []
    const agoMs = Math.round(at - (own?.at ?? Number.NEGATIVE_INFINITY))
    return [`${process}: ${call} ${subject} at ${at}, ${agoMs} ms after it had renewed its turn last`]
  }

  /** One request per user at a time, not more at a time than are allowed, and not more in any time. */
  load({ name }: ProcessLife): string[] {
    const own = this.#witnesses.requests
      .filter((each) => each.process === name && !isSlow(each))
      .sort((one, other) => one.from - other.from)
    const { concurrency, maxRequestsPerSecond } = keeperLimits
    return own.flatMap((request, index) => {
      const inFlight = own.slice(0, index).filter(({ to }) => to > request.from + 2 * stampMs)
      const problems = []
      if (inFlight.some(({ username }) => username === request.username)) problems.push('two for one user')
      if (inFlight.length + 1 > concurrency) problems.push(`${inFlight.length + 1} in flight`)
      // Of those that were sent earlier and arrive late, no more can be in flight than are allowed.
      const isBurst = own.slice(0, index).some(({ from }, earlier) => {
        const pauses = (request.from - from + stampMs) / fastMs(1_000 / maxRequestsPerSecond)
        return index - earlier + 1 > concurrency + 1 + pauses
      })
      if (isBurst) problems.push('too many in a short time')
      return problems.map((problem) => `${name}: ${problem} at ${request.from}`)
    })
  }

  /** A turn that is not given back lasts as long as it was renewed for. */
  turns(): string[] {
    return this.#turns.flatMap(({ at, process }, index) => {
      const before = this.#turns[index - 1]
      if (before === undefined || before.process === process || before.value === 'free') return []
      return at - before.at >= leaseMs - stampMs
        ? []
        : [`${process} took the turn ${Math.round(at - before.at)} ms after ${before.process} had renewed it`]
    })
  }

  /** Only the process that noted itself in the head writes records. */
  chunks(): string[] {
    let epoch: { readonly name: string; readonly at: number } | undefined
    return this.#witnesses.store.commands.flatMap(({ at, kind, key, process, value = '' }) => {
      if (kind !== 'write') return []
      if (key === 'kept:head') {
        const name: string = JSON.parse(value).epoch
        if (epoch?.name !== name) epoch = { name, at }
      } else if (key.startsWith('kept:chunk:')) {
        const { by }: StoredChunk = JSON.parse(value)
        // Until it has put its mark on all of them, the one before may still write.
        if (by !== epoch?.name && at - (epoch?.at ?? 0) > graceMs) return [`${process} wrote ${key} at ${at}`]
      }
      return []
    })
  }

  /** A recreate and an end are read back; a first create, too. A create for one with an id needs the record only. */
  #isNoted(request: KeeperRequest): boolean {
    const { kind, username, subscriptionId } = request
    if (kind === 'update') return true
    const { store, requests } = this.#witnesses
    const at = this.#sentBy(request) + stampMs
    const before = requests.findLast((each) => each.from < request.from && isOfSame(each, request))
    const read = store.recordsReadBy(request.process, username, before?.to ?? 0, at)
    if (kind === 'unsubscribe') {
      return read.some(({ x, s }) => x === 1 && s.some(({ i }) => i === subscriptionId))
    }
    if (read.some(isInDoubt)) return true
    if (kind === 'recreate') return false
    // One that was cut off knows what it knew before.
    const since = this.#failureOf(request.process, request.from)?.from ?? at
    const records = store.recordsOf(username, since - graceMs, at)
    return records.some((record) => (since < at ? record !== undefined : hasId(record)))
  }

  #isOutdated(request: KeeperRequest): boolean {
    const { process, from, kind } = request
    const life = this.#lives.get(process)
    if (life === undefined || kind === 'unsubscribe') return false
    // One that cannot read the store cannot know, and goes on with plain creates.
    if (kind === 'create' && this.#failureOf(request.process, request.from) !== undefined) return false
    const newer = this.#announced.find(({ generation }) => generation > life.configuration)
    return newer !== undefined && Math.min(from, life.diedAt) > newer.at + heartbeatMs + 2 * graceMs
  }

  /** A tombstone is of somebody who was not on the roster when it was read last: at least twice in this time. */
  #isWanted(username: string, at: number): boolean {
    const since = at - rosterMs
    return (this.#witnesses.wanted.get(username) ?? []).some(({ from, to }) => from <= since && at <= to)
  }

  /** Whether an earlier create of this user had no answer, so that it may have taken effect just now. */
  #isUnsettled(request: KeeperRequest): boolean {
    return this.#witnesses.requests.some((each) => {
      if (each === request || each.username !== request.username || !isCreate(each)) return false
      const diedAt = this.#lives.get(each.process)?.diedAt ?? 0
      const endedAt = each.status === undefined ? Math.min(each.to, diedAt) : diedAt
      // Answered, as far as can be seen from here.
      if (each.status !== undefined && each.to < diedAt) return false
      return each.from < request.from && request.from < endedAt + settlingMs - stampMs
    })
  }

  #isIdStored(request: KeeperRequest): boolean {
    const { status, subscriptionId, to, username } = request
    if (!isCreate(request) || status !== 201 || isSlow(request)) return true
    if (!this.#isUndisturbed(request)) return true
    const records = this.#witnesses.store.recordsOf(username, to, to + graceMs)
    return records.some((record) => record?.s.some(({ i }) => i === subscriptionId))
  }

  #isDoubtStored(request: KeeperRequest): boolean {
    const { status, from, to, username } = request
    if (!isCreate(request) || status !== undefined || !this.#isUndisturbed(request)) return true
    return this.#witnesses.store.recordsOf(username, from, to + graceMs).some(isInDoubt)
  }

  /** Whether the one that sent it went on for a while, and could write. */
  #isUndisturbed({ process, from, to }: KeeperRequest): boolean {
    const life = this.#lives.get(process)
    const end = to + graceMs
    const pauses = [...this.#failuresOf(process), ...(life?.stops ?? [])]
    const isPaused = pauses.some((each) => each.from < end && from < each.to + heartbeatMs + graceMs)
    const turn = this.#turns.findLast(({ at }) => at <= end)
    return life !== undefined && life.diedAt > end && !isPaused && turn?.process === process
  }

  #failuresOf(process: string): readonly Span[] {
    const told = this.#witnesses.storeFailures.get(process) ?? []
    return [...(this.#lives.get(process)?.cuts ?? []), ...told]
  }

  /** The failure of the store that a process knew of: that it is over the next beat tells. */
  #failureOf(process: string, at: number): Span | undefined {
    const knownMs = heartbeatMs + graceMs
    return this.#failuresOf(process).find((each) => each.from <= at && at <= each.to + knownMs)
  }

  /** What arrives after a process has died was sent before. */
  #sentBy({ process, from }: KeeperRequest): number {
    return Math.min(from, this.#lives.get(process)?.diedAt ?? from)
  }
}

/** In this time the roster is read at least twice, also by one that takes over. */
export const rosterMs = fastMs(60_000) * 4

function isOfSame(one: KeeperRequest, other: KeeperRequest): boolean {
  return one.process === other.process && one.username === other.username
}

/** Of such a request the one who sent it may have given up the answer: after 30 s, which the connection is part of. */
function isSlow({ from, to }: KeeperRequest): boolean {
  return to - from > fastMs(20_000)
}

function isCreate({ kind }: KeeperRequest): boolean {
  return kind === 'create' || kind === 'recreate'
}

function isInDoubt(record: StoredUser | undefined): boolean {
  return record?.s.some(({ doubt }) => doubt === 1) === true
}

function hasId(record: StoredUser | undefined): boolean {
  return record?.s.some(({ i }) => i !== undefined) === true
}
