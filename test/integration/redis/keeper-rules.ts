/**
 * What no request of a keeper may ever be, whatever happens: read afterwards from the emulator's record of requests.
 * Times are by our clock, in milliseconds. What a process does alone, from claim to call, is tested in virtual time.
 */
import { fastMs } from './fast-time.js'
import type { ProcessLife, Span } from './keeper-processes.js'
import type { KeeperRequest } from './keeper-requests.js'

export interface Records {
  readonly requests: readonly KeeperRequest[]
  readonly lives: readonly ProcessLife[]
  readonly deployments: readonly { readonly configuration: number; readonly at: number }[]
  readonly wanted: ReadonlyMap<string, readonly Span[]>
}

/** The configuration is read this often. */
const configurationReadMs = fastMs(30_000)
/** The service may carry out a request until then: a claim is left behind after two minutes, and its request has left in ten seconds. */
const mayTakeEffectMs = fastMs(110_000)
/** Between a decision and what others see of it a busy machine may let this much pass. */
const graceMs = 2_000
/** Stamps are whole milliseconds, of two clocks. */
const stampMs = 2
/** In this time the roster is read at least twice, also by a process that was just started. */
export const rosterMs = fastMs(60_000) * 4

/** @returns what was wrong, in a sentence each */
export function violations({ requests, lives, deployments, wanted }: Records): string[] {
  const lifeOf = (name: string) => lives.find((life) => life.name === name)
  /** What arrives after a process has died was sent before. */
  const sentBy = ({ process, from }: KeeperRequest) => Math.min(from, lifeOf(process)?.diedAt ?? from)

  const isOutdated = (request: KeeperRequest) => {
    const { configuration: own = 0 } = lifeOf(request.process) ?? {}
    const newer = deployments.find(({ configuration }) => configuration > own)
    return newer !== undefined && sentBy(request) > newer.at + configurationReadMs + graceMs
  }
  /** Who was not on the roster when it was read last is removed: it is read at least twice in this time. */
  const isWanted = (request: KeeperRequest) => {
    const at = sentBy(request)
    return wanted.get(request.username)?.some(({ from, to }) => from <= at - rosterMs && at <= to)
  }
  /** Until when others have to wait: for the answer, or, if its sender did not get it, until the claim is stale. */
  const mayTakeEffectUntil = (request: KeeperRequest) => {
    const isAnswered = request.status !== undefined && request.to <= (lifeOf(request.process)?.diedAt ?? 0)
    return isAnswered ? request.to : sentBy(request) + mayTakeEffectMs
  }
  /** Another request for the same user is under way, of whatever process, or is unanswered and may take effect. */
  const isBesideAnother = (request: KeeperRequest) =>
    requests.some(
      (each) =>
        each.username === request.username &&
        each.from < request.from &&
        mayTakeEffectUntil(each) > sentBy(request) + stampMs,
    )

  return requests.flatMap((request) => {
    const { kind, process, username, subscriptionId, from } = request
    const rules = {
      'is of a user who is not kept here': !wanted.has(username),
      'has the values of an earlier configuration': kind !== 'unsubscribe' && isOutdated(request),
      'ends what is wanted': kind === 'unsubscribe' && isWanted(request),
      'is beside another': isBesideAnother(request),
    }
    return Object.entries(rules).flatMap(([rule, isBroken]) =>
      isBroken ? [`${process}: ${kind} ${subscriptionId ?? ''} ${username} at ${from} ${rule}`] : [],
    )
  })
}
