/** The wire form of the subscription calls (docs/service.md, Endpoints; update and unsubscribe: see `Routes`). */
import { type Address, addressBelow } from '../http/address.js'
import type { UnauthorizedRequest } from '../http/transport.js'
import type { CreateSubscriptionInput } from './create-input.js'
import type { UpdateSubscriptionParametersInput } from './update-input.js'

/** Method and path of one operation. */
export interface Route {
  /** The HTTP method. Default: see {@link Routes}. */
  readonly method?: 'POST' | 'PUT' | 'DELETE' | undefined
  /** Begins with `/`, is added to `baseUrl`, and holds `{subscriptionId}` for the id. Default: see {@link Routes}. */
  readonly path?: string | undefined
}

/**
 * The operations whose method and path are not part of the service's interface document (docs/service.md, Endpoints).
 * The defaults come from the service's public developer pages.
 */
export interface Routes {
  /** How a subscription is ended. Default: `DELETE /api/subscriptions/{subscriptionId}`. */
  readonly unsubscribe?: Route | undefined
  /** How parameters are changed. Default: `PUT /api/subscriptions/{subscriptionId}`. */
  readonly update?: Route | undefined
}

const subscriptionPath = '/api/subscriptions/{subscriptionId}'

/** Where subscriptions are created. */
export function createAddress(baseUrl: URL): Address {
  return addressBelow(baseUrl, '/api/subscriptions')
}

export function createRequest(address: Address, input: CreateSubscriptionInput): UnauthorizedRequest {
  const form = new URLSearchParams()
  form.append('notification_type', input.notificationTypes.join(','))
  form.append('username', input.usernames.join(','))
  form.append('callback_url', String(input.callbackUrl))
  if (input.recreateIfExists !== undefined) form.append('recreateIfExists', String(input.recreateIfExists))
  return formRequest('POST', address, input, form)
}

export function updateRequest(
  baseUrl: URL,
  route: Route | undefined,
  subscriptionId: number,
  input: UpdateSubscriptionParametersInput,
): UnauthorizedRequest {
  return formRequest(
    route?.method ?? 'PUT',
    subscriptionAddress(baseUrl, route, subscriptionId),
    input,
    new URLSearchParams(),
  )
}

export function unsubscribeRequest(
  baseUrl: URL,
  route: Route | undefined,
  subscriptionId: number,
): UnauthorizedRequest {
  return {
    method: route?.method ?? 'DELETE',
    address: subscriptionAddress(baseUrl, route, subscriptionId),
    secrets: [],
  }
}

function subscriptionAddress(baseUrl: URL, route: Route | undefined, subscriptionId: number): Address {
  const path = route?.path ?? subscriptionPath
  return addressBelow(baseUrl, path.replaceAll('{subscriptionId}', String(subscriptionId)))
}

function formRequest(
  method: UnauthorizedRequest['method'],
  address: Address,
  { parameters, headers }: UpdateSubscriptionParametersInput,
  form: URLSearchParams,
): UnauthorizedRequest {
  // A copy, because the caller may change its own object while the call is in flight.
  const copiedHeaders = headers && { ...headers }
  const secrets = Object.values(copiedHeaders ?? {})
  for (const [name, value] of Object.entries(parameters ?? {})) {
    form.append(name, value)
    secrets.push(value)
  }
  return { method, address, headers: copiedHeaders, body: form.toString(), secrets }
}
