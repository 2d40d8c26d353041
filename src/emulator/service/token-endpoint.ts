/** The token endpoint (docs/service.md, Endpoints), and the access tokens that it issues. */
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { endpoints } from '../../shared/routes.js'
import { decodeFormComponent } from '../../shared/validation.js'
import type { ResolvedEmulatorOptions } from '../options.js'
import {
  type Endpoint,
  formType,
  invalid,
  isForm,
  parseAuthorization,
  parseForm,
  Refusal,
  type ServiceRequest,
} from './endpoint.js'

type Identity = Pick<ResolvedEmulatorOptions, 'domain' | 'clientId' | 'clientSecret' | 'credentialsEncoding'>

/**
 * Takes client ID and secret from the Basic header, or from the form † (docs/service.md, Authentication). A `Refusal` has an
 * error code of RFC 6749 section 5.2.
 */
export function tokenEndpoint(identity: Identity, tokens: TokenIssuer): Endpoint {
  async function answer({ body, headers, variable }: ServiceRequest): Promise<Response> {
    // In a path a plus sign is no space.
    if (decodeFormComponent(variable.replaceAll('+', '%2B')) !== identity.domain)
      throw new Refusal(404, 'There is no such domain', 'not_found')
    if (!isForm(headers)) throw invalid(`Content-Type must be ${formType}`)
    const form = parseForm(body)
    authenticate(identity, headers, form)
    if (form.get('grant_type') !== 'client_credentials') {
      throw new Refusal(400, 'grant_type must be client_credentials', 'unsupported_grant_type')
    }
    const scope = form.get('scope')
    const access_token = await tokens.issue(identity.clientId, scope)
    const answer = { access_token, token_type: 'Bearer', expires_in: tokens.lifetimeSeconds, scope }
    return Response.json(answer, {
      status: endpoints.token.success,
      headers: { 'cache-control': 'no-store' },
    })
  }
  return { operation: 'token', ...endpoints.token, answer }
}

function authenticate(identity: Identity, sent: Headers, form: ReadonlyMap<string, string>): void {
  const authorization = parseAuthorization(sent.get('authorization'))
  const { clientId, clientSecret, domain } = identity
  const accepted =
    authorization === undefined
      ? form.get('client_id') === clientId && form.get('client_secret') === clientSecret
      : authorization.isBasic && acceptsBasic(identity, authorization.value)
  if (accepted) return
  const challenge = `Basic realm="${domain.replaceAll(/["\\]/g, '\\$&')}"`
  const headers = { 'www-authenticate': challenge }
  throw new Refusal(401, 'No credentials, or not those of this emulator', 'invalid_client', headers)
}

function acceptsBasic(
  { clientId, clientSecret, credentialsEncoding }: Identity,
  credentials: string,
): boolean {
  if (credentialsEncoding === 'raw') return credentials === `${clientId}:${clientSecret}`
  const [id, secret] = credentials.split(/:(.*)/s).map(decodeFormComponent)
  return id === clientId && secret === clientSecret
}

/** Issues access tokens, JWTs signed with ES256, and remembers which it accepts (docs/service.md, Resources). */
export class TokenIssuer {
  readonly #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  /** In milliseconds: the claim `exp` counts whole seconds. */
  readonly #expiresAt = new Map<string, number>()

  constructor(
    private readonly issuer: string,
    readonly lifetimeSeconds: number,
  ) {}

  async issue(clientId: string, scope?: string): Promise<string> {
    const nowMs = Date.now()
    const expiresAt = nowMs + this.lifetimeSeconds * 1000
    const token = await new SignJWT({ azp: clientId, scope })
      .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
      .setIssuer(this.issuer)
      .setSubject(clientId)
      .setJti(randomUUID())
      .setIssuedAt(Math.floor(nowMs / 1000))
      .setExpirationTime(Math.ceil(expiresAt / 1000))
      .sign(this.#keys.privateKey)
    this.#expiresAt.set(token, expiresAt)
    return token
  }

  /** Whether this issuer made the token, and it is neither expired nor revoked. */
  accepts(token: string): boolean {
    return Date.now() < (this.#expiresAt.get(token) ?? 0)
  }

  /** Accepts no token that was issued before. */
  revokeAll(): void {
    this.#expiresAt.clear()
  }
}
