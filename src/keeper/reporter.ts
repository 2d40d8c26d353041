/** Reports log lines, gaps and problems. Each line names the keeper, because a process may have several. */
import { callLogged, consoleLogOf, describeError, type Log, logOf } from '../logger.js'
import { excerpt } from '../shared/text.js'
import type { SubscriptionKeeperOptions } from './options.js'
import { longAgo, minute, now } from './timing.js'
import type { KeeperGap, KeeperProblem, KeeperProblemCode } from './types.js'

export class Reporter {
  readonly problems = new Problems((problem) => this.#reportProblem(problem))
  readonly log: Log
  /** For important reports: writes to `console.error` if there is no logger. */
  readonly #consoleLog: Log

  constructor(private readonly options: SubscriptionKeeperOptions) {
    const { logger, name: keeper } = options
    const named =
      (log: Log): Log =>
      (level, fields, message) =>
        log(level, { ...fields, keeper }, message)
    this.log = named(logOf(logger))
    this.#consoleLog = named(consoleLogOf(logger))
  }

  reportGap(gap: KeeperGap): void {
    const message = 'A subscription was restored: notifications since its last proof may be missing'
    const { onGap } = this.options
    const log = onGap === undefined ? this.#consoleLog : this.log
    log('warn', { event: 'subscription.restored', ...gap }, message)
    this.call('onGap', () => onGap?.(gap), gap)
  }

  #reportProblem(problem: KeeperProblem): void {
    const { message, error, resolved, ...others } = problem
    // pino serializes errors under this name.
    const fields = { ...others, description: message, ...(error !== undefined && { err: error }) }
    const { onProblem } = this.options
    const log = onProblem === undefined ? this.#consoleLog : this.log
    if (resolved) log('info', { event: 'problem.resolved', ...fields }, 'A problem is resolved')
    else log('error', { event: 'problem.began', ...fields }, 'A problem began, or more users have it')
    this.call('onProblem', () => onProblem?.(problem), { code: problem.code })
  }

  /** Calls a function of the user: its errors must not stop the keeper. */
  call(listener: 'onGap' | 'onProblem' | 'onProgress', run: () => unknown, about: object = {}): void {
    const failure = { event: 'listener.failed', listener, ...about }
    void callLogged(this.#consoleLog, failure, 'A listener failed', run)
  }
}

/** The reason of an error: a failed `fetch` says it in its cause, a failed connection in its code. */
export function reasonOf(error: unknown): string {
  const { cause, code, message, name } = describeError(error)
  const reason = message || `${code ?? name}`
  const because = cause === undefined ? '' : reasonOf(cause)
  return excerpt(reason.includes(because) ? reason : `${reason} (${because})`, 300)
}

interface OpenProblem extends Omit<KeeperProblem, 'usernames' | 'resolved'> {
  /** Each user, with the reason if users have different ones. Empty: the problem concerns all users. */
  readonly usernames: Map<string, string>
  /** The number of users at the last report. */
  reportedUsers: number
}

interface ProblemDetails extends Pick<KeeperProblem, 'error' | 'subscriptionId'> {
  /** Distinguishes problems of one code that can be open at the same time. */
  readonly about?: string | number
  /** One more user who has the problem, and why: the message names both. */
  readonly username?: string
  readonly reason?: string | undefined
}

/** Reports each problem when it begins, when its users double, and when it is resolved. */
export class Problems {
  readonly #open = new Map<string, OpenProblem>()
  /** When an already resolved problem was reported. */
  readonly #onceSince = new Map<string, number>()

  constructor(private readonly report: (problem: KeeperProblem) => void) {}

  list(): KeeperProblem[] {
    return Array.from(this.#open.values(), (problem) => publicProblem(problem, false))
  }

  begin(code: KeeperProblemCode, message: string, details: ProblemDetails = {}): void {
    const { username, reason = '', about = username === undefined ? '' : 'users', ...others } = details
    const known = this.#open.get(`${code} ${about}`)
    const begun = { code, message, sinceAt: Date.now(), usernames: new Map(), reportedUsers: 0 }
    const problem: OpenProblem = known ?? begun
    this.#open.set(`${code} ${about}`, Object.assign(problem, { message, ...others }))
    if (username !== undefined) problem.usernames.set(username, reason)
    const { size } = problem.usernames
    if (known !== undefined && (size === 0 || size < 2 * known.reportedUsers)) return
    problem.reportedUsers = size
    this.report(publicProblem(problem, false))
  }

  /** Removes the user from these problems. A problem without users is resolved. Default: from all. */
  removeUser(username: string, codes?: readonly KeeperProblemCode[]): void {
    for (const { code, usernames } of this.#open.values()) {
      const isMeant = codes === undefined || codes.includes(code)
      if (isMeant && usernames.delete(username) && usernames.size === 0) this.resolve(code, 'users')
    }
  }

  resolve(code: KeeperProblemCode, about: string | number = ''): void {
    const problem = this.#open.get(`${code} ${about}`)
    if (this.#open.delete(`${code} ${about}`) && problem !== undefined)
      this.report(publicProblem(problem, true))
  }

  /** Reports an already resolved problem, at most every ten minutes. */
  reportOnce(code: KeeperProblemCode, message: string, about: string): void {
    const once = `once ${about}`
    if (now() - (this.#onceSince.get(`${code} ${once}`) ?? longAgo) < 10 * minute) return
    this.#onceSince.set(`${code} ${once}`, now())
    this.begin(code, message, { about: once })
    this.resolve(code, once)
  }
}

function publicProblem(problem: OpenProblem, resolved: boolean): KeeperProblem {
  const { message, usernames, reportedUsers, ...others } = problem
  const named = [...usernames].slice(0, 5).map(([name, reason]) => `${JSON.stringify(name)} ${reason}`.trim())
  const more = usernames.size > named.length ? ` and ${usernames.size - named.length} more` : ''
  const who = named.length > 0 ? `${named.join(', ')}${more}: ` : ''
  return {
    ...others,
    message: `${resolved ? 'Resolved: ' : ''}${who}${message}`,
    ...(reportedUsers > 0 && { usernames: [...usernames.keys()] }),
    resolved,
  }
}
