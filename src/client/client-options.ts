/** How a client is configured. */
import type { Auth } from '../auth/auth.js'
import type { FetchLike } from '../http/fetch-transport.js'
import type { RetryOptions } from '../http/retry.js'
import type { DispatcherLike } from '../http/undici-transport.js'
import type { Logger } from '../logger.js'
import type { Routes } from '../subscriptions/requests.js'

/**
 * What a `NotificationClient` needs: `baseUrl` and `auth`; the rest has defaults. `dispatcher`, `fetch` and `ca`
 * exclude each other.
 */
export interface NotificationClientOptions {
  /** Base address of the notification service, `https:`. */
  readonly baseUrl: string | URL
  /** Client credentials, `{ username, password }` or `{ getAccessToken }` (docs/service.md, Authentication). */
  readonly auth: Auth
  /**
   * Certificates of a private authority, as text in PEM, to trust besides the public ones. For connections that the
   * client opens itself: a `dispatcher` or a `fetch` has its own. Default: none.
   */
  readonly ca?: string | undefined
  /**
   * An undici `Dispatcher` (6, 7 or 8) for all requests: a mock, a proxy with rules of its own. The client never closes
   * it. Default: one of the client's own, which follows `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
   */
  readonly dispatcher?: DispatcherLike | undefined
  /** A `fetch` for all requests, in place of undici, which is then never loaded. Default: undici. */
  readonly fetch?: FetchLike | undefined
  /** Limit for each whole call, token and retries included, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number | undefined
  /** How failed attempts are repeated; `false` for not at all. Default: as {@link RetryOptions} says. */
  readonly retry?: RetryOptions | false | undefined
  /** Gets one structured line per request, retry, refresh and failure; never a secret. Default: `false`, silent. */
  readonly logger?: Logger | false | undefined
  /** Method and path of unsubscribe and update (docs/service.md, Endpoints). Default: as {@link Routes} says. */
  readonly routes?: Routes | undefined
  /** Allows `http:` addresses on loopback hosts, for tests. Default: `false`. */
  readonly allowInsecureLoopback?: boolean | undefined
}
