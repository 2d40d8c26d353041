/** The token endpoint (docs/service.md, Endpoints), with the error answers of RFC 6749 section 5.2. */

import type { ResolvedEmulatorOptions } from '../emulator-options.js'
import { parseAuthorization } from './authorization.js'
import { decodeFormComponent, isFormContentType, parseForm } from './form.js'
import { Refusal } from './refusal.js'
import type { TokenIssuer } from './token-issuer.js'

export class TokenEndpoint {
  readonly #options: ResolvedEmulatorOptions
  readonly #tokens: TokenIssuer

  constructor(options: ResolvedEmulatorOptions, tokens: TokenIssuer) {
    this.#options = options
    this.#tokens = tokens
  }

  /**
   * Answers a token request. Client ID and secret are taken from the Basic header or else, as the service's public
   * developer pages have it, from the form.
   *
   * @throws `Refusal` with an error code of RFC 6749 section 5.2
   */
  async issue(headers: Headers, body: string): Promise<Response> {
    if (!isFormContentType(headers.get('content-type'))) {
      throw new Refusal(400, 'invalid_request', 'Content-Type must be application/x-www-form-urlencoded')
    }
    const form = parseForm(body)
    this.#authenticate(headers, form)
    const grantType = form.get('grant_type')
    if (grantType === undefined) throw new Refusal(400, 'invalid_request', 'grant_type is missing')
    if (grantType !== 'client_credentials') {
      throw new Refusal(400, 'unsupported_grant_type', 'grant_type must be client_credentials')
    }
    // An empty parameter counts as left out (RFC 6749 section 3.2).
    const scope = form.get('scope') || undefined
    const { accessToken, expiresInSeconds } = await this.#tokens.issue(this.#options.clientId, scope)
    return Response.json(
      { access_token: accessToken, token_type: 'Bearer', expires_in: expiresInSeconds, scope },
      { headers: { 'cache-control': 'no-store', pragma: 'no-cache' } },
    )
  }

  #authenticate(headers: Headers, form: ReadonlyMap<string, string>): void {
    const authorization = parseAuthorization(headers.get('authorization'))
    const secretInForm = form.get('client_secret')
    if (authorization !== undefined && secretInForm !== undefined) {
      throw new Refusal(
        400,
        'invalid_request',
        'Credentials must not be in the header and in the form at once',
      )
    }
    const { clientId, clientSecret } = this.#options
    const accepted =
      authorization === undefined
        ? form.get('client_id') === clientId && secretInForm === clientSecret
        : authorization.scheme === 'basic' && this.#acceptsBasic(authorization.credentials)
    if (accepted) return
    throw new Refusal(401, 'invalid_client', 'Client ID or secret is missing or wrong', {
      'www-authenticate': `Basic realm="${this.#options.domain.replaceAll(/["\\]/g, '\\$&')}"`,
    })
  }

  #acceptsBasic(credentials: string): boolean {
    const { clientId, clientSecret, credentialsEncoding } = this.#options
    if (credentialsEncoding === 'raw') return credentials === `${clientId}:${clientSecret}`
    const colon = credentials.indexOf(':')
    return (
      colon !== -1 &&
      decodeFormComponent(credentials.slice(0, colon)) === clientId &&
      decodeFormComponent(credentials.slice(colon + 1)) === clientSecret
    )
  }
}
