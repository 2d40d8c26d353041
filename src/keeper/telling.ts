/** What the user's callbacks and the log are told, and in which words. */
import { type Log, type Logger, logOf, lossLogOf } from '../logger.js'
import { callSafely } from '../shared/call-safely.js'
import type { KeeperGap, KeeperProblem, SubscriptionKeeperOptions } from './keeper-types.js'

export interface Tellers {
  readonly log: Log
  readonly lossLog: Log
}

/** The logs of one keeper: each line names the keeper, because a process may have several. */
export function tellersOf(name: string, logger: Logger | false | undefined): Tellers {
  const log = logOf(logger)
  const lossLog = lossLogOf(logger)
  return {
    log: (level, fields, message) => log(level, { keeper: name, ...fields }, message),
    lossLog: (level, fields, message) => {
      const named = { keeper: name, ...fields }
      // Lines on the console are read by people; a logger has its own way of writing times.
      lossLog(level, logger === undefined ? withReadableTimes(named) : named, message)
    },
  }
}

/** The last moment that a `Date` can be, in milliseconds since 1970: of a later one `toISOString` throws. */
const maxDateMs = 8.64e15

function withReadableTimes(fields: object): object {
  const readable = (name: string, value: unknown) =>
    name.endsWith('At') && typeof value === 'number' && Math.abs(value) <= maxDateMs
      ? new Date(value).toISOString()
      : value
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, readable(name, value)]))
}

export function tellOfGap(
  gap: KeeperGap,
  { onGap, log, lossLog }: Tellers & Pick<SubscriptionKeeperOptions, 'onGap'>,
): void {
  const message = 'A subscription was restored: notifications since its last proof may be missing'
  if (onGap === undefined) {
    lossLog('warn', gap, message)
    return
  }
  log('info', gap, message)
  callSafely(
    () => onGap(gap),
    (err) => lossLog('error', { ...gap, err }, 'onGap failed'),
  )
}

export function tellOfProblem(
  problem: KeeperProblem,
  { onProblem, log, lossLog }: Tellers & Pick<SubscriptionKeeperOptions, 'onProblem'>,
): void {
  const { message, error, ...others } = problem
  // Under the name that pino serializes errors by.
  const fields = error === undefined ? others : { ...others, err: error }
  const line = `${problem.code}: ${message}`
  if (onProblem === undefined) {
    lossLog(problem.resolved ? 'info' : 'error', fields, line)
    return
  }
  log('info', fields, line)
  callSafely(
    () => onProblem(problem),
    (err) => lossLog('error', { code: problem.code, err }, `onProblem failed. It was told: ${line}`),
  )
}

/** @param isAtWork - whether this process has read the records, and goes on with what needs no store */
export function storeMessage(isAtWork: boolean): string {
  return `The store fails, hangs or does not keep what is written. ${
    isAtWork
      ? 'Until it works again nothing is replaced or unsubscribed, and nobody new is subscribed; recorded users are ' +
        'still looked after.'
      : 'Until it works again this process does nothing: it is not the one that has read the records last.'
  }`
}

export function conflictMessage(userCount: number, username: string): string {
  const who = userCount === 1 ? username : `${userCount} users`
  return (
    `The service has another subscription for ${who} with this callback URL, whose id the keeper does not know: ` +
    'perhaps a joint subscription, another environment, or an earlier process of this keeper, whose store was lost. ' +
    'Unsubscribe it by its id, which a STRAY names a minute or two after its next delivery, or use another callback URL.'
  )
}

/** @param error - what the client says of the user who came last */
export function invalidMessage(userCount: number, username: string, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error)
  const who =
    userCount === 1
      ? `${JSON.stringify(username)} cannot be subscribed:`
      : `${userCount} users cannot be subscribed. Of the last one the client says:`
  return `${who} ${reason} Correct the roster or the options: until then nothing is sent for whom the client refuses.`
}
