/** Asks the authorization server for an access token (docs/service.md, Endpoints; RFC 6749 section 4.4). */
import * as z from 'zod'
import { type Issue, type ResponseValidationError, TokenRequestError } from '../errors.js'
import { type Answer, unusableAnswer } from '../http/answer.js'
import type { Deadline, TimeoutReason } from '../http/deadline.js'
import { type Address, addressBelow, type UnauthorizedRequest } from '../http/exchange.js'
import { intermediaryAdvice } from '../http/intermediary.js'
import { isPage, reasonIn } from '../http/reason.js'
import { type Authorization, type Authorizer, type Call, type CallSettings, withCall } from '../http/send.js'
import { gatewayKeys } from '../shared/redact.js'
import { endpoints } from '../shared/routes.js'
import {
  isBusy,
  isNotFound,
  isOk,
  isOutcomeOpen,
  isRedirect,
  isServerError,
  isTokenRefused,
} from '../shared/statuses.js'
import { channelFor, traced } from '../shared/tracing.js'
import { formatIssues, numericId, parseJson } from '../shared/validation.js'
import { type View, worded } from '../shared/words.js'
import type { ClientAuthentication, ClientCredentialsAuth } from './credentials.js'

export interface IssuedToken {
  readonly accessToken: string
  readonly lifetimeMs: number
  /**
   * Counted from when the answered attempt was sent, because the token was issued later. On the wall clock, because the
   * monotonic one may stand still while the machine sleeps. If the wall clock is wrong, a 401 brings a new token.
   */
  readonly expiresAt: number
}

/** How token requests are sent: with the client's options, not a call's, because they serve many calls. */
export interface TokenRequestOptions
  extends Omit<CallSettings, 'method' | 'authorizer' | 'signal' | 'onResponse' | 'connections'> {
  /** A gateway in front of the service. Its headers may be keys, so they go to its own origin only. */
  readonly gateway: { readonly origin: string; readonly headers: Record<string, string> } | undefined
}

const tokenChannel = channelFor('token')

export class TokenEndpoint implements Authorizer {
  readonly address: Address
  readonly #scope: string | undefined
  readonly #authenticate: ClientAuthentication
  /** What may be slow while a call waits for a token, for the words of its `TimeoutError`. */
  readonly #mayBeSlow: string
  readonly #settings: CallSettings
  readonly #request: UnauthorizedRequest
  /** The newest token request in flight. */
  #inFlight: Call | undefined

  constructor(credentials: ClientCredentialsAuth, { gateway, ...options }: TokenRequestOptions) {
    const { authUrl, clientAuthentication, clientSecret, domain, scope } = credentials
    const { proxy } = options.transport
    this.#scope = scope
    this.#mayBeSlow = [
      'the authorization server',
      ...(typeof clientAuthentication === 'function' ? ['`auth.clientAuthentication`'] : []),
      ...(proxy === undefined ? [] : [`the proxy that ${proxy} names`]),
    ].join(' or ')
    this.#authenticate = clientAuthenticationOf(credentials)
    const path = endpoints.token.path.replace('{domain}', () => encodeURIComponent(domain))
    this.address = addressBelow(new URL(authUrl), path)
    this.#settings = { ...options, method: 'The token request', authorizer: this }
    const headers = gateway?.origin === this.address.origin ? gateway.headers : undefined
    this.#request = {
      method: 'POST',
      address: this.address,
      headers,
      secrets: clientSecret === undefined ? gatewayKeys(headers) : [...gatewayKeys(headers), clientSecret],
      isRepeatable: true,
      action: 'get an access token',
      secretsIn: issuedTokens,
    }
  }

  timeoutReason(): TimeoutReason {
    return {
      words: ({ orMoreTime }) =>
        `there was no access token from ${this.address.shown} yet. ` +
        `See whether ${this.#mayBeSlow} is slow or out of reach${orMoreTime}.`,
      lastFailure: this.#inFlight?.lastFailure,
    }
  }

  async authorize(deadline: Deadline): Promise<Authorization> {
    const body = new URLSearchParams({ grant_type: 'client_credentials' })
    if (this.#scope !== undefined) body.set('scope', this.#scope)
    const noSecrets = [...body.keys(), ...publicFields]
    const request = { url: this.address.url, headers: new Headers(), body }
    const authenticating = (async () => this.#authenticate(request))()
    await deadline.waitFor(authenticating, 'token')
    const headers = Object.fromEntries(request.headers)
    const secrets = [
      // Without the scheme, such as `Basic`.
      ...Object.values(headers).map((value) => value.replace(/^\w+ /, '')),
      ...[...body].flatMap(([name, value]) => (noSecrets.includes(name) ? [] : [value])),
    ]
    return { headers, body: body.toString(), secrets }
  }

  /** @throws `TokenRequestError`, `ResponseValidationError`, `ConnectionError` or `TimeoutError` */
  requestToken(limits: Pick<CallSettings, 'timeoutMs' | 'retry'>): Promise<IssuedToken> {
    const contextOf = (): { status?: number } => ({})
    return traced(tokenChannel, contextOf, (context) =>
      withCall(
        { ...this.#settings, ...limits },
        async (call) => {
          this.#inFlight = call
          const answer = await call.send(this.#request, tokenRequestError)
          if (!isOk(answer.status) || answer.intermediary !== undefined) throw tokenRequestError(answer)
          const token = answer.json(accessTokenResponseSchema, (issues) => noToken(answer, issues))
          const lifetimeMs = token.expires_in * 1_000
          const expiresAt = Date.now() + lifetimeMs - (performance.now() - call.attemptedSince)
          return { accessToken: token.access_token, lifetimeMs, expiresAt }
        },
        (call) => {
          if (this.#inFlight === call) this.#inFlight = undefined
          if (context !== undefined && call.status !== undefined) context.status = call.status
        },
      ),
    )
  }
}

/** The function for each way to authenticate (RFC 6749 section 2.3.1). */
function clientAuthenticationOf(credentials: ClientCredentialsAuth): ClientAuthentication {
  const { clientAuthentication, clientId, clientSecret = '', credentialsEncoding } = credentials
  if (typeof clientAuthentication === 'function') return clientAuthentication
  if (clientAuthentication === 'body') {
    return ({ body }) => {
      body.set('client_id', clientId)
      body.set('client_secret', clientSecret)
    }
  }
  const encode = credentialsEncoding === 'form-urlencoded' ? formUrlEncode : (text: string) => text
  const value = `Basic ${basicCredentials(encode(clientId), encode(clientSecret))}`
  return ({ headers }) => headers.set('authorization', value)
}

/** The credentials of a Basic header (RFC 7617). */
export function basicCredentials(user: string, password: string): string {
  return Buffer.from(`${user}:${password}`, 'utf8').toString('base64')
}

/** Fields of a client authentication that are no secrets. */
const publicFields = ['client_id', 'client_assertion_type']

function formUrlEncode(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}

/** The tokens in an answer, so that no log line shows one that the server repeats elsewhere. */
function issuedTokens(body: string): string[] {
  const { access_token, id_token, refresh_token } = Object(parseJson(body))
  return [access_token, id_token, refresh_token].filter((token) => typeof token === 'string')
}

/** Visible ASCII, because a token is sent in a header. */
export const accessTokenPattern = /^[\x21-\x7e]+$/

/** A successful answer of the token endpoint (docs/service.md, Resources). Fields beyond these are dropped. */
export const accessTokenResponseSchema = z.object({
  /** The token, in JWT format; opaque to the client. */
  access_token: z
    .string()
    .regex(accessTokenPattern, 'must be visible ASCII characters: nothing else can be sent in a header'),
  /** Bearer, in any case: letter by letter, because a pattern in JSON Schema has no flags. */
  token_type: z
    .string()
    .regex(/^[Bb][Ee][Aa][Rr][Ee][Rr]$/, 'must be Bearer, the only type this service uses'),
  /** Lifetime in seconds, counted from when the answer was generated; also if it is written as text. */
  expires_in: z.preprocess(numericId, z.int().nonnegative()),
})

function noToken(answer: Answer, issues: readonly Issue[]): ResponseValidationError {
  const { code, words } = reasonIn(answer)
  const reason = code !== undefined || isPage(answer.body) ? words : formatIssues(issues)
  const what = `The token endpoint ${answer.url} answered 200 with a body that is no access token (${reason}).`
  return unusableAnswer(
    answer,
    ({ setting }) =>
      `${what} Check that ${setting('authUrl')} and ${setting('domain')} name the authorization server.`,
    issues,
  )
}

/** What an error status of the token endpoint means (RFC 6749 section 5.2). */
function tokenRequestError(answer: Answer): TokenRequestError {
  const { code: error, description: errorDescription, words } = reasonIn(answer)
  const details = { ...answer.details, error, errorDescription }
  const what = answer.failure(words)
  return worded(
    (view) => `${what}. ${advice(details, view)}`,
    (message) => new TokenRequestError(message, details),
  )
}

function advice(
  { error, intermediary, status }: Pick<TokenRequestError, 'error' | 'intermediary' | 'status'>,
  { setting }: View,
): string {
  const authUrl = setting('authUrl')
  const domain = setting('domain')
  if (intermediary !== undefined && !isRedirect(status)) {
    return intermediaryAdvice(intermediary, 'client ID and secret', authUrl)
  }
  if (error === 'invalid_scope')
    return `Check ${setting('scope')}: it is unknown there, or not granted to this client.`
  if (isTokenRefused(status, error)) {
    return (
      `Check ${setting('clientId')}, ${setting('clientSecret')} and ${domain}; if the secret contains + or %, also try ` +
      `${setting('credentialsEncoding', 'form-urlencoded')} or ${setting('clientAuthentication', 'body')}.`
    )
  }
  if (isNotFound(status)) return `Check ${authUrl} and ${domain}: there is no token endpoint at this address.`
  if (isBusy(status) || isOutcomeOpen(status) || isTokenRefused(status)) {
    return 'The server is busy or unavailable: try again later.'
  }
  if (isServerError(status)) {
    return `Another attempt will not help: check ${authUrl}, or ask the operator of the authorization server.`
  }
  return `Check ${authUrl}: a token endpoint answers 200, and redirects are not followed.`
}
