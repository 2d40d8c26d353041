/**
 * The state of the routes that the interface leaves open. A 404 is proof only on a route that has answered 2xx: on any
 * other it may mean that the service has another route.
 */
import { ApiError } from '../../errors.js'
import { messageOf } from '../../shared/text.js'
import type { Configuration, RouteName } from '../memory/configuration.js'
import type { Problems } from '../reporter.js'
import { brokenAnswerMs, now } from '../timing.js'

export class Routes {
  readonly #configuration: Configuration
  readonly #problems: Problems
  /** Wrong routes, and when each may be tried again; monotonic. */
  readonly #wrong = new Map<RouteName, number>()
  /** The user that tests the unsubscribe route. */
  #tester: string | undefined

  constructor(configuration: Configuration, problems: Problems) {
    this.#configuration = configuration
    this.#problems = problems
  }

  isProven(route: RouteName): boolean {
    return this.#configuration.isRouteProven(route) && !this.#wrong.has(route)
  }

  /** Whether the route may be tried: it is not known to be wrong, or was not tried for a while. */
  mayTry(route: RouteName): boolean {
    return now() >= (this.#wrong.get(route) ?? 0)
  }

  /**
   * Whether this user may be unsubscribed now. An unproven route is tested with one user at a time: testing a wrong route
   * may leave a subscription.
   */
  enter(username: string): boolean {
    if (this.isProven('unsubscribe')) return true
    this.#tester ??= username
    return this.#tester === username
  }

  leave(username: string): void {
    if (this.#tester === username) this.#tester = undefined
  }

  /** The route has answered 2xx. */
  prove(route: RouteName): void {
    this.#configuration.proveRoute(route)
    if (this.#wrong.delete(route) && this.#wrong.size === 0) this.#problems.resolve('ROUTES')
  }

  /** The route does not find a subscription that exists, or the service does not have the route. */
  refute(route: RouteName, error: unknown): void {
    this.#wrong.set(route, now() + brokenAnswerMs)
    this.#problems.begin('ROUTES', wrongMessage([...this.#wrong.keys()], error), { error })
  }
}

function wrongMessage(routes: readonly RouteName[], error: unknown): string {
  const settings = routes.map((route) => `\`routes.${route}\``).join(' and ')
  const whatWaits = routes.includes('unsubscribe')
    ? 'no subscription is ended'
    : 'new parameters reach only new subscriptions'
  const why =
    error instanceof ApiError && error.url ? `${error.url} answered ${error.status}` : messageOf(error)
  return (
    `The service has another route than ${settings} of the client: ${why}. Set \`routes.update\` and ` +
    `\`routes.unsubscribe\` to the method and the path of this service. Until then ${whatWaits}.`
  )
}
