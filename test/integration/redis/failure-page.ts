/** What a person needs who looks for the reason why keepers did not settle: a page, and no stack. */
import { fastTime, slowTime } from './fast-time.js'
import type { KeeperProcesses, Known } from './keeper-processes.js'
import type { KeeperRequests } from './keeper-requests.js'
import type { StoredUser } from './store-history.js'
import type { SubscriptionHistory } from './subscription-history.js'

/** What the keepers are to agree on about one user. */
export interface Standing {
  readonly username: string
  readonly isWanted: boolean
  /** What exists at the service. */
  readonly subscriptions: readonly {
    readonly id: number
    readonly types: readonly string[]
    readonly callbackUrl: string
    readonly parameters: Readonly<Record<string, string>>
  }[]
  /** The record in the store; one that expires is none. */
  readonly record: StoredUser | undefined
  /** Whether the index in the store has the name. */
  readonly isIndexed: boolean
  /** Ids by process. */
  readonly known: Readonly<Record<string, number | undefined>>
}

export interface FailureParts {
  readonly seed: number
  /** What failed. */
  readonly text: string
  readonly standings: readonly Standing[]
  readonly keepers: KeeperProcesses
  readonly requests: KeeperRequests
  readonly history: SubscriptionHistory
}

const usersShown = 3
const eventsShown = 8
const linesShown = 60
const lineLength = 220

/** Times are seconds since the clocks of the processes started, by our clock. */
export async function failurePage(parts: FailureParts): Promise<string> {
  const { keepers, seed, standings, text } = parts
  const names = standings.map(({ username }) => username)
  const about = [...names, ...(text.match(/process-\d+/g) ?? [])]
  return [
    // Of our clock, in milliseconds since 1970.
    text.replaceAll(/\d{13}(\.\d+)?/g, (at) => `${secondsAt(keepers, Number(at))}`),
    `RANDOM_SEED=${seed} repeats these moments, ${secondsAt(keepers, Date.now())} s since the clocks started.`,
    `Users: ${names.join(', ')}`,
    ...standings.slice(0, usersShown).flatMap((each) => userLines(parts, each)),
    ...(await processLines(keepers, names)),
    'Log:',
    ...logLines(keepers.output, about),
  ].join('\n')
}

function userLines({ history, keepers, requests }: FailureParts, standing: Standing): string[] {
  const { username, isWanted, subscriptions, record, known } = standing
  const s = (at: number | undefined) => (at === undefined ? '-' : secondsAt(keepers, at))
  const writes = keepers.store?.recordsOf(username, Date.now()) ?? []
  return [
    '',
    `${username}, ${isWanted ? 'wanted' : 'not wanted'}`,
    `  at the service: ${JSON.stringify(subscriptions)}`,
    `  known: ${JSON.stringify(known)}`,
    `  record: ${recordText(keepers, record)}`,
    ...history
      .of(username)
      .slice(-eventsShown)
      .map(({ subscription: { subscriptionId }, createdAt, endedAt, reason = '' }) => {
        return `  subscription ${subscriptionId}: ${s(createdAt)} to ${s(endedAt)} ${reason}`
      }),
    ...requests.all
      .filter((each) => each.username === username)
      .slice(-eventsShown)
      .map(({ from, process, kind, subscriptionId = '', status = 'lost' }) => {
        return `  request at ${s(from)}: ${process} ${kind} ${subscriptionId} ${status}`
      }),
    ...writes.slice(-eventsShown).map(({ at, process, record: written }) => {
      return `  write at ${s(at)}: ${process} ${recordText(keepers, written)}`
    }),
  ].map((line) => line.slice(0, 4 * lineLength))
}

async function processLines(keepers: KeeperProcesses, names: readonly string[]): Promise<string[]> {
  const indexes = Array.from({ length: keepers.count }, (_, index) => index)
  const lines = await Promise.all(
    indexes.map(async (index) => {
      const { name, configuration } = keepers.lifeOf(index)
      const known = await Promise.race([keepers.known(index), noAnswer()])
      return ['', `${name}, configuration ${configuration}`, ...knownLines(keepers, known, names)]
    }),
  )
  return lines.flat()
}

function knownLines(keepers: KeeperProcesses, known: Known | undefined, names: readonly string[]): string[] {
  if (known === undefined) return ['  does not answer']
  const { counts, problems } = known.status
  const about = known.subscriptions.filter(({ username }) => names.includes(username))
  return [
    `  ${JSON.stringify(counts)}`,
    `  ${problems.length} problems`,
    ...problems.slice(-eventsShown).map(({ code, message, sinceAt }) => {
      return `  ${code} since ${secondsOf(keepers, sinceAt)}: ${message}`.slice(0, lineLength)
    }),
    ...about.slice(0, usersShown).map((each) => `  ${JSON.stringify(withSeconds(keepers, each))}`),
  ]
}

/** The last lines of the processes, or that name one of the users, and the last of all others. */
function logLines(output: readonly string[], names: readonly string[]): string[] {
  const isAbout = (line: string) =>
    names.some((name) => line.startsWith(`${name}:`) || line.includes(`'${name}'`))
  const indexed = output.map((line, index) => ({ line, index }))
  const about = indexed.filter(({ line }) => isAbout(line)).slice(-linesShown / 2)
  const others = indexed.filter(({ line }) => !isAbout(line)).slice(about.length - linesShown)
  return [...about, ...others]
    .sort((one, other) => one.index - other.index)
    .map(({ line }) => line.slice(0, lineLength))
}

function recordText(keepers: KeeperProcesses, record: StoredUser | undefined): string {
  return record === undefined ? 'none' : JSON.stringify(withSeconds(keepers, record))
}

/** Stamps of the fast clocks as seconds. */
function withSeconds(keepers: KeeperProcesses, value: object): unknown {
  return JSON.parse(JSON.stringify(value), (key, each) =>
    key.endsWith('At') && typeof each === 'number' ? secondsOf(keepers, each) : each,
  )
}

function secondsOf({ clockStartedAt }: KeeperProcesses, fastAt: number): number {
  return Math.round(slowTime(0, fastAt - clockStartedAt)) / 1_000
}

function secondsAt(keepers: KeeperProcesses, at: number): number {
  return secondsOf(keepers, fastTime(keepers.clockStartedAt, at))
}

function noAnswer(): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, 2_000, undefined))
}
