/** Which troubles there are: each is told when it begins, when its users double, and when it is over. */
import type { KeeperProblem, KeeperProblemCode } from './keeper-types.js'

/** A trouble of single users stands beside one of everybody: a `ROSTER` of some names beside one of the roster itself. */
const users = 'users'

interface OpenProblem {
  readonly code: KeeperProblemCode
  readonly sinceAt: number
  readonly subscriptionId?: number
  /** Empty if the trouble concerns everybody. */
  readonly usernames: Set<string>
  /** How many users there were when it was told last. */
  toldUsers: number
  message: string
  error?: unknown
}

export class Problems {
  readonly #tell: (problem: KeeperProblem) => void
  readonly #open = new Map<string, OpenProblem>()

  constructor(tell: (problem: KeeperProblem) => void) {
    this.#tell = tell
  }

  list(): KeeperProblem[] {
    return Array.from(this.#open.values(), (problem) => shown(problem, false))
  }

  /**
   * Notes a trouble, and tells of a new one.
   *
   * @param details.about - tells apart troubles of one code that can stand beside each other
   */
  begin(
    code: KeeperProblemCode,
    message: string,
    { about, ...details }: { error?: unknown; subscriptionId?: number; about?: string | number } = {},
  ): void {
    const key = keyOf(code, about)
    const known = this.#open.get(key)
    if (known !== undefined) {
      known.message = message
      known.error = details.error ?? known.error
      return
    }
    const problem = { ...newProblem(code), message, ...details }
    this.#open.set(key, problem)
    this.#tell(shown(problem, false))
  }

  /**
   * One more user has this trouble. Told for the first, and whenever they have doubled.
   *
   * @param message - given how many users have it, and who came last: of one, that is the one
   */
  addUser(
    code: KeeperProblemCode,
    username: string,
    message: (userCount: number, username: string) => string,
    error?: unknown,
  ): void {
    const key = keyOf(code, users)
    const problem = this.#open.get(key) ?? newProblem(code)
    const { usernames } = problem
    if (usernames.has(username)) return
    usernames.add(username)
    problem.message = message(usernames.size, username)
    problem.error = error
    if (usernames.size < 2 * problem.toldUsers) return
    this.#open.set(key, problem)
    problem.toldUsers = usernames.size
    this.#tell(shown(problem, false))
  }

  /** Notes that this user has the trouble no longer. With the last user the trouble is over. */
  removeUser(code: KeeperProblemCode, username: string): void {
    const usernames = this.#open.get(keyOf(code, users))?.usernames
    if (usernames?.delete(username) && usernames.size === 0) this.end(code, users)
  }

  /** Notes that nobody else has any trouble. */
  keepUsers(isKept: (username: string) => boolean): void {
    for (const { code, usernames } of [...this.#open.values()]) {
      for (const username of usernames) if (!isKept(username)) this.removeUser(code, username)
    }
  }

  /** Notes that a trouble is over, and tells so if there was one. */
  end(code: KeeperProblemCode, about?: string | number): void {
    const key = keyOf(code, about)
    const problem = this.#open.get(key)
    if (problem === undefined) return
    this.#open.delete(key)
    this.#tell(shown(problem, true))
  }

  /** Notes that all troubles of a kind are over, whatever and whomever they are about. */
  endAll(code: KeeperProblemCode): void {
    for (const [key, problem] of this.#open) {
      if (problem.code !== code) continue
      this.#open.delete(key)
      this.#tell(shown(problem, true))
    }
  }

  /** Tells of what has happened and is over already. */
  tellOnce(code: KeeperProblemCode, message: string): void {
    this.begin(code, message, { about: 'once' })
    this.end(code, 'once')
  }
}

function keyOf(code: KeeperProblemCode, about: string | number | undefined): string {
  return about === undefined ? code : `${code} ${about}`
}

function newProblem(code: KeeperProblemCode): OpenProblem {
  return { code, message: '', sinceAt: Date.now(), usernames: new Set(), toldUsers: 0 }
}

function shown(problem: OpenProblem, resolved: boolean): KeeperProblem {
  const { code, message, sinceAt, usernames, subscriptionId, toldUsers, error } = problem
  return {
    code,
    message: resolved ? `Over: ${message}` : message,
    sinceAt,
    ...(toldUsers > 0 && { usernames: [...usernames] }),
    ...(subscriptionId !== undefined && { subscriptionId }),
    ...(error !== undefined && { error }),
    resolved,
  }
}
