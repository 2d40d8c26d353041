/** What a person needs who looks for the reason why keepers did not settle: a page, and no stack. */
import { inspect } from 'node:util'
import { fastTime, slowTime } from './fast-time.js'
import type { KeeperProcesses } from './keeper-processes.js'
import type { KeeperRequests } from './keeper-requests.js'
import type { SubscriptionHistory } from './subscription-history.js'

/** A user's record in the store, as far as these tests read it. */
export interface StoredUser {
  readonly username: string
  readonly id?: number
}

/** What the keepers are to agree on about one user. */
export interface Standing {
  readonly username: string
  readonly isWanted: boolean
  readonly subscriptions: readonly {
    readonly id: number
    readonly types: readonly string[]
    readonly callbackUrl: string
    readonly parameters: Readonly<Record<string, string>>
  }[]
  /** The record in the store; one that expires is none. */
  readonly record: StoredUser | undefined
  readonly isIndexed: boolean
  readonly known: Readonly<Record<string, number | undefined>>
}

export interface FailureParts {
  readonly seed: number
  readonly text: string
  readonly standings: readonly Standing[]
  readonly keepers: KeeperProcesses
  readonly requests: KeeperRequests
  readonly history: SubscriptionHistory
}

/** Of three users, the last eight of each kind of events; and what is logged of them, and last. Times are seconds by our clock. */
export async function failurePage(parts: FailureParts): Promise<string> {
  const { history, keepers, requests, seed, standings, text } = parts
  const names = standings.map(({ username }) => username)
  const users = standings.slice(0, 3).map((standing) => ({
    ...standing,
    lifetimes: history.of(standing.username).slice(-8),
    requests: requests.all.filter((each) => each.username === standing.username).slice(-8),
  }))
  const isAbout = (line: string) =>
    [...names, ...(text.match(/process-\d+/g) ?? [])].some((name) => line.includes(name))
  const log = keepers.output.filter(isAbout).slice(-40).concat(keepers.output.slice(-20))
  const page = [
    text,
    `RANDOM_SEED=${seed} repeats these moments. Users: ${names.join(', ')}`,
    ...users.map((user) => inspect(user, { depth: 9, breakLength: 200, compact: 9 })),
    ...[...Array(keepers.count).keys()].map((index) => inspect(keepers.lifeOf(index), { breakLength: 200 })),
    ...log.map((line) => line.slice(0, 220)),
  ].join('\n')
  return page.replaceAll(/\d{13}(?:\.\d+)?/g, (at) => secondsAt(keepers, Number(at)))
}

/** Seconds since the clocks of the processes started; a stamp that is later than now is of those clocks. */
function secondsAt({ clockStartedAt }: KeeperProcesses, at: number): string {
  const fastAt = at > Date.now() ? at : fastTime(clockStartedAt, at)
  return (slowTime(0, fastAt - clockStartedAt) / 1_000).toFixed(3)
}
