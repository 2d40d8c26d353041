/** The Authorization header of subscription calls (docs/service.md, Authentication), by kind of credentials. */
import { ConfigurationError } from '../errors.js'
import type { Address } from '../http/address.js'
import type { Deadline } from '../http/deadline.js'
import { untilAborted } from '../http/waits.js'
import { accessTokenPattern } from './access-token-response.js'
import { basicCredentials } from './basic-credentials.js'
import type { HeldToken, TokenSource } from './token-source.js'

export interface Authorization {
  /** The value of the header. */
  readonly header: string
  /** Texts that must not appear in anything shown. */
  readonly secrets: readonly string[]
}

export interface Authorizer {
  /** What a call is to be sent with; without a promise where there is nothing to wait for. */
  authorize(deadline: Deadline): Authorization | Promise<Authorization>
  /** After a 401: another authorization to repeat the call with, or `undefined` when the 401 is the answer. */
  reauthorize(rejected: Authorization, deadline: Deadline): Promise<Authorization | undefined>
  /** An access token that needs no waiting, as a promise made beforehand. */
  heldAccessToken(): Promise<string> | undefined
  accessToken(deadline: Deadline): Promise<string>
}

interface BearerAuthorization extends Authorization {
  readonly accessToken: string
  /** Issued during this very call: if it is rejected, another one would be too. */
  readonly isFresh: boolean
}

function bearer(accessToken: string, isFresh: boolean): BearerAuthorization {
  return { header: `Bearer ${accessToken}`, secrets: [accessToken], accessToken, isFresh }
}

/** One authorization per token rather than per call: its header is checked and encoded once. */
class HeldBearer {
  #last: BearerAuthorization | undefined

  of(accessToken: string): BearerAuthorization {
    if (this.#last?.accessToken !== accessToken) this.#last = bearer(accessToken, false)
    return this.#last
  }
}

/** Client credentials: tokens are requested, held and refreshed by a {@link TokenSource}. */
export class TokenAuthorizer implements Authorizer {
  readonly #source: TokenSource
  readonly #endpoint: Address
  readonly #tokenRequest: () => Deadline | undefined
  readonly #held = new HeldBearer()

  /**
   * @param options.endpoint - where the source's tokens come from
   * @param options.tokenRequest - the time limit of the source's request in flight, if there is one
   */
  constructor(
    source: TokenSource,
    { endpoint, tokenRequest }: { endpoint: Address; tokenRequest: () => Deadline | undefined },
  ) {
    this.#source = source
    this.#endpoint = endpoint
    this.#tokenRequest = tokenRequest
  }

  authorize(deadline: Deadline): BearerAuthorization | Promise<BearerAuthorization> {
    const held = this.#source.current()
    return held === undefined ? this.#authorizeAnew(deadline) : this.#held.of(held.accessToken)
  }

  async reauthorize(
    rejected: BearerAuthorization,
    deadline: Deadline,
  ): Promise<BearerAuthorization | undefined> {
    this.#source.invalidate(rejected.accessToken)
    return rejected.isFresh ? undefined : this.authorize(deadline)
  }

  heldAccessToken(): Promise<string> | undefined {
    return this.#source.current()?.promise
  }

  async accessToken(deadline: Deadline): Promise<string> {
    const token = this.#source.current() ?? (await this.#next(deadline))
    return token.accessToken
  }

  async #authorizeAnew(deadline: Deadline): Promise<BearerAuthorization> {
    const next = await this.#next(deadline)
    return bearer(next.accessToken, next.issuedHere)
  }

  #next(deadline: Deadline): Promise<HeldToken> {
    deadline.waitForToken(this.#endpoint, this.#tokenRequest)
    return untilAborted(this.#source.next(deadline.endsAt - performance.now()), deadline)
  }
}

/** Tokens from a function of the caller's, who also caches and refreshes them. */
export class ProvidedTokenAuthorizer implements Authorizer {
  readonly #getAccessToken: () => unknown
  readonly #held = new HeldBearer()

  constructor(getAccessToken: () => unknown) {
    this.#getAccessToken = getAccessToken
  }

  async authorize(deadline: Deadline): Promise<BearerAuthorization> {
    return this.#held.of(await this.accessToken(deadline))
  }

  /** Asks the caller once more: only another token than the rejected one is worth repeating the call. */
  async reauthorize(
    rejected: BearerAuthorization,
    deadline: Deadline,
  ): Promise<BearerAuthorization | undefined> {
    const next = await this.authorize(deadline)
    return next.accessToken === rejected.accessToken ? undefined : next
  }

  heldAccessToken(): undefined {
    return undefined
  }

  async accessToken(deadline: Deadline): Promise<string> {
    deadline.waitForToken(undefined)
    const provided = (async () => this.#getAccessToken())()
    const token = await untilAborted(provided, deadline)
    if (typeof token === 'string' && accessTokenPattern.test(token)) return token
    const message = whatIsWrongWith(token)
    throw new ConfigurationError(`auth.getAccessToken ${message}.`, {
      issues: [{ path: ['auth', 'getAccessToken'], message }],
    })
  }
}

/** Why something that a caller gave for a token is none. */
function whatIsWrongWith(token: unknown): string {
  if (typeof token !== 'string') return `must return the token as a string, not ${describe(token)}`
  if (token === '') return 'must return a token: what it returned is empty'
  if (/^bearer\s/i.test(token)) return 'must return the token alone: leave out the prefix `Bearer`'
  return 'must return a token of visible ASCII characters: nothing else can be sent in a header'
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  return typeof value === 'object' ? 'an object that holds it' : `a ${typeof value}`
}

/** User name and password on every subscription call; there are no tokens. */
export class BasicAuthorizer implements Authorizer {
  readonly #authorization: Authorization

  constructor(username: string, password: string) {
    const credentials = basicCredentials(username, password, 'raw')
    this.#authorization = { header: `Basic ${credentials}`, secrets: [credentials, password] }
  }

  authorize(): Authorization {
    return this.#authorization
  }

  async reauthorize(): Promise<undefined> {
    return undefined
  }

  heldAccessToken(): undefined {
    return undefined
  }

  async accessToken(): Promise<string> {
    const message = 'is a user name and password: there is no access token to give'
    throw new ConfigurationError(
      `auth ${message}. Configure client credentials or \`getAccessToken\` instead.`,
      { issues: [{ path: ['auth'], message }] },
    )
  }
}
