/** The wire form of the subscription calls (docs/service.md, Endpoints; update and unsubscribe: see `Routes`). */
import { InvalidRequestError } from '../errors.js'
import { gatewayKeys } from '../http/redact.js'
import type { UnauthorizedRequest } from '../http/send.js'
import { type Address, addressBelow } from '../http/transport.js'
import { endpoints, idPlace, type ResolvedRoute, type Routes, resolvedRoute } from '../shared/routes.js'
import { formatIssues } from '../shared/validation.js'
import type {
  AssociatedValues,
  CreateSubscriptionInput,
  UpdateSubscriptionParametersInput,
} from './schemas.js'

/** The options that all requests of a client share. */
export interface RequestsOptions {
  readonly baseUrl: URL
  readonly routes: Routes | undefined
  /** Sent with every request, for a gateway in front of the service. */
  readonly headers: AssociatedValues | undefined
}

type Values = Pick<UpdateSubscriptionParametersInput, 'parameters' | 'headers'>

/** Makes the requests of one client. Its methods take validated input. */
export class SubscriptionRequests {
  readonly #baseUrl: URL
  readonly #createAddress: Address
  readonly #unsubscribeRoute: ResolvedRoute
  readonly #updateRoute: ResolvedRoute
  readonly #headers: AssociatedValues | undefined

  constructor({ baseUrl, headers, routes }: RequestsOptions) {
    this.#baseUrl = baseUrl
    this.#createAddress = addressBelow(baseUrl, endpoints.create.path)
    this.#unsubscribeRoute = resolvedRoute('unsubscribe', routes?.unsubscribe)
    this.#updateRoute = resolvedRoute('update', routes?.update)
    // A copy, because the caller may change its own object.
    this.#headers = headers && { ...headers }
  }

  create(input: CreateSubscriptionInput): UnauthorizedRequest {
    const { callbackUrl, notificationTypes, parameters, recreateIfExists, usernames } = input
    const form = new URLSearchParams()
    form.append('notification_type', notificationTypes.join(','))
    form.append('username', usernames.join(','))
    form.append('callback_url', String(callbackUrl))
    if (recreateIfExists !== undefined) form.append('recreateIfExists', String(recreateIfExists))
    for (const [name, value] of Object.entries(parameters ?? {})) form.append(name, value)
    const [, query = ''] = String(callbackUrl).split('?', 2)
    return {
      method: 'POST',
      address: this.#createAddress,
      body: form.toString(),
      ...this.#headersAndSecrets(input, [query]),
      // Without `recreateIfExists`, a repeated create is answered 409 if the first answer was lost.
      isRepeatable: recreateIfExists === true,
      purpose: 'create the subscription',
    }
  }

  /** @throws `InvalidRequestError` for a parameter with the name of the id's field */
  update(subscriptionId: number, input: UpdateSubscriptionParametersInput): UnauthorizedRequest {
    const { parameters = {} } = input
    const { idField } = this.#updateRoute
    if (idField !== undefined && Object.hasOwn(parameters, idField)) {
      throw refusal(['parameters', idField], 'is the field of the id (`routes.update.idField`)')
    }
    return {
      ...this.#onRoute(this.#updateRoute, subscriptionId, parameters),
      ...this.#headersAndSecrets(input),
      isRepeatable: true,
      purpose: 'update the subscription',
    }
  }

  unsubscribe(subscriptionId: number): UnauthorizedRequest {
    return {
      ...this.#onRoute(this.#unsubscribeRoute, subscriptionId, undefined),
      ...this.#headersAndSecrets({}),
      isRepeatable: true,
      purpose: 'unsubscribe',
    }
  }

  /** @param parameters - for the body; there is no body without parameters and without a field for the id */
  #onRoute(
    { format, idField, method, path }: ResolvedRoute,
    subscriptionId: number,
    parameters: AssociatedValues | undefined,
  ): Pick<UnauthorizedRequest, 'method' | 'address' | 'body' | 'contentType'> {
    const address = addressBelow(this.#baseUrl, path.replace(idPlace, String(subscriptionId)))
    if (idField === undefined && parameters === undefined) return { method, address }
    const fields = [
      ...(idField === undefined ? [] : [[idField, subscriptionId] as const]),
      ...Object.entries(parameters ?? {}),
    ]
    if (format === 'json') {
      const body = JSON.stringify(Object.fromEntries(fields))
      return { method, address, body, contentType: 'application/json' }
    }
    const form = new URLSearchParams()
    for (const [name, value] of fields) form.append(name, String(value))
    return { method, address, body: form.toString() }
  }

  /** The headers of the client and of the call. Each value of a header or parameter may be a secret. */
  #headersAndSecrets(
    { headers, parameters }: Values,
    furtherSecrets: readonly string[] = [],
  ): Pick<UnauthorizedRequest, 'headers' | 'secrets'> {
    const own = this.#headers
    const taken = new Set(Object.keys(own ?? {}).map((name) => name.toLowerCase()))
    const twice = Object.keys(headers ?? {}).find((name) => taken.has(name.toLowerCase()))
    if (twice !== undefined) throw refusal(['headers', twice], "is a header of the client's option `headers`")
    const all = headers === undefined && own === undefined ? undefined : { ...own, ...headers }
    const given = [headers, parameters].flatMap((values) => Object.values(values ?? {}))
    const secrets = [...gatewayKeys(own), ...given, ...furtherSecrets]
    return { headers: all, secrets }
  }
}

function refusal(path: readonly string[], message: string): InvalidRequestError {
  const issues = [{ path, message }]
  return new InvalidRequestError(`Nothing was sent: ${formatIssues(issues)}.`, { issues })
}
