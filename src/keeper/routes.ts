/** Whether the client's routes to update and to unsubscribe work: the interface leaves them open. */
import { ApiError } from '../errors.js'
import type { Operation } from '../shared/routes.js'
import { messageOf } from '../shared/text.js'
import type { Problems } from './reporter.js'
import { brokenAnswerMs, now } from './timing.js'

/** Which of the routes that the interface leaves open work, as far as this process knows. */
export class Routes {
  readonly #confirmed = new Set<Operation>()
  /** Wrong routes, and when each may be tried again. */
  readonly #wrong = new Map<Operation, number>()
  /** The users who test unconfirmed routes. */
  readonly #testers = new Map<Operation, string>()
  /** Users who wait for those tests. */
  readonly #waiting: (() => void)[] = []

  constructor(private readonly problems: Problems) {}

  isConfirmed(route: Operation): boolean {
    return this.#confirmed.has(route) && !this.#wrong.has(route)
  }

  /** Whether the route may be tried: it is not known to be wrong, or was not tried for a while. */
  mayTry(route: Operation, isIdKnown = true): boolean {
    const againFrom = this.#wrong.get(route)
    // To learn an unknown id, the subscription would be replaced, and then the route may still be wrong.
    return againFrom === undefined || (isIdKnown && now() >= againFrom)
  }

  /** One user at a time tests an unconfirmed route; the others wait. {@link end} must follow. @returns whether this user waited */
  async begin(route: Operation, username: string): Promise<boolean> {
    let hasWaited = false
    for (; this.mayTry(route) && !this.isConfirmed(route); hasWaited = true) {
      const tester = this.#testers.get(route) ?? username
      this.#testers.set(route, tester)
      if (tester === username) break
      // Two users who test a route each, and wait for the other, would wait for ever.
      this.end(username)
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    return hasWaited
  }

  end(username: string): void {
    for (const [route, tester] of this.#testers) {
      if (tester !== username) continue
      this.#testers.delete(route)
      this.#wake()
    }
  }

  #wake(): void {
    for (const resume of this.#waiting.splice(0)) resume()
  }

  confirm(route: Operation): void {
    this.#confirmed.add(route)
    this.#wake()
    if (this.#wrong.delete(route) && this.#wrong.size === 0) this.problems.resolve('ROUTES')
  }

  refute(route: Operation, error: unknown): void {
    this.#wrong.set(route, now() + brokenAnswerMs)
    this.#wake()
    this.problems.begin('ROUTES', routesMessage([...this.#wrong.keys()], error), { error })
  }
}

function routesMessage(routes: readonly Operation[], error: unknown): string {
  const settings = routes.map((route) => `\`routes.${route}\``).join(' and ')
  const refusal =
    error instanceof ApiError && error.url ? `${error.url} answered ${error.status}` : messageOf(error)
  const answer = error === undefined ? 'an unsubscribe was answered 2xx, and ended nothing' : refusal
  return (
    `The service has another route than ${settings} of the client: ${answer}. Set \`routes.update\` and ` +
    '`routes.unsubscribe` to the methods and paths of this service: until then subscriptions are not updated or not ended.'
  )
}
