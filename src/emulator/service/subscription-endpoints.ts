/** The subscription calls: create, update and unsubscribe (docs/service.md, Endpoints). */

import type { ResolvedEmulatorOptions } from '../emulator-options.js'
import { parseAuthorization } from './authorization.js'
import { isFormContentType } from './form.js'
import { Refusal } from './refusal.js'
import { readCreateForm, readUpdateForm } from './subscription-form.js'
import type { SubscriptionStore } from './subscription-store.js'
import type { TokenIssuer } from './token-issuer.js'

export class SubscriptionEndpoints {
  readonly #options: ResolvedEmulatorOptions
  readonly #tokens: TokenIssuer
  readonly #store: SubscriptionStore

  constructor(options: ResolvedEmulatorOptions, tokens: TokenIssuer, store: SubscriptionStore) {
    this.#options = options
    this.#tokens = tokens
    this.#store = store
  }

  async create(headers: Headers, body: string): Promise<Response> {
    await this.#authorize(headers)
    requireForm(headers)
    const result = this.#store.create(readCreateForm(body, headers, this.#options))
    switch (result.outcome) {
      case 'created':
        return Response.json({ subscription_id: result.subscriptionId }, { status: 201 })
      case 'duplicate':
        throw new Refusal(
          409,
          'duplicate_subscription',
          `Subscription ${result.conflictsWith} is identical; recreateIfExists=true would replace it`,
        )
      case 'partial-overlap':
        throw new Refusal(
          409,
          'partial_overlap',
          `Subscription ${result.conflictsWith} covers some of the users and types at this callback URL`,
        )
    }
  }

  /**
   * Method and path come from the service's public developer pages (docs/service.md, Endpoints); the
   * status of success was not readable there, so 200 with an empty body is the emulator's choice.
   */
  async update(headers: Headers, body: string, subscriptionId: number): Promise<Response> {
    await this.#authorize(headers)
    requireForm(headers)
    // Checked before the form is read: for a subscription that has ended the answer is 404, whatever the form holds.
    if (!this.#store.isActive(subscriptionId)) throw notFound(subscriptionId)
    this.#store.updateParameters(subscriptionId, readUpdateForm(body, headers, this.#options))
    return new Response(null, { status: 200 })
  }

  /** Method, path and statuses come from the service's public developer pages (docs/service.md, Endpoints). */
  async unsubscribe(headers: Headers, subscriptionId: number): Promise<Response> {
    await this.#authorize(headers)
    if (!this.#store.end(subscriptionId, 'unsubscribed')) throw notFound(subscriptionId)
    return new Response(null, { status: 204 })
  }

  /** Either kind of Authorization will do (docs/service.md, Authentication). */
  async #authorize(headers: Headers): Promise<void> {
    const authorization = parseAuthorization(headers.get('authorization'))
    const { username, password } = this.#options
    const accepted =
      authorization?.scheme === 'bearer'
        ? await this.#tokens.accepts(authorization.token)
        : authorization?.credentials === `${username}:${password}`
    if (accepted) return
    const invalidToken = authorization?.scheme === 'bearer' ? ', error="invalid_token"' : ''
    throw new Refusal(
      401,
      'unauthorized',
      'Credentials or access token are missing, wrong, expired or revoked',
      {
        'www-authenticate': `Bearer realm="notifications"${invalidToken}, Basic realm="notifications"`,
      },
    )
  }
}

function requireForm(headers: Headers): void {
  if (isFormContentType(headers.get('content-type'))) return
  const message = 'Content-Type must be application/x-www-form-urlencoded'
  throw new Refusal(415, 'unsupported_media_type', message)
}

function notFound(subscriptionId: number): Refusal {
  return new Refusal(404, 'not_found', `There is no active subscription ${subscriptionId}`)
}
