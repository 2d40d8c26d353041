/** The wire form of the subscription calls (docs/service.md, Endpoints; update and unsubscribe: see `Routes`). */
import type { UnauthorizedRequest } from '../http/send.js'
import { type Address, addressBelow } from '../http/transport.js'
import type {
  AssociatedValues,
  CreateSubscriptionInput,
  UpdateSubscriptionParametersInput,
} from './schemas.js'

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
  const { callbackUrl, notificationTypes, recreateIfExists, usernames } = input
  const form = new URLSearchParams()
  form.append('notification_type', notificationTypes.join(','))
  form.append('username', usernames.join(','))
  form.append('callback_url', String(callbackUrl))
  if (recreateIfExists !== undefined) form.append('recreateIfExists', String(recreateIfExists))
  const { secrets, ...parts } = formParts(form, input)
  const [, query = ''] = String(callbackUrl).split('?', 2)
  return {
    method: 'POST',
    address,
    ...parts,
    secrets: [...secrets, query],
    // Without `recreateIfExists`, repeating a create whose answer was lost would be answered 409.
    isRepeatable: recreateIfExists === true,
    purpose: 'create the subscription',
  }
}

export function updateRequest(
  baseUrl: URL,
  route: Route | undefined,
  subscriptionId: number,
  input: UpdateSubscriptionParametersInput,
): UnauthorizedRequest {
  return {
    method: route?.method ?? 'PUT',
    address: subscriptionAddress(baseUrl, route, subscriptionId),
    ...formParts(new URLSearchParams(), input),
    isRepeatable: true,
    purpose: 'update the subscription',
  }
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
    isRepeatable: true,
    purpose: 'unsubscribe',
  }
}

function subscriptionAddress(baseUrl: URL, route: Route | undefined, subscriptionId: number): Address {
  const path = route?.path ?? subscriptionPath
  return addressBelow(baseUrl, path.replaceAll('{subscriptionId}', String(subscriptionId)))
}

/** The parts of a request that carry associated values; each value may be a secret. */
function formParts(
  form: URLSearchParams,
  {
    parameters,
    headers,
  }: { parameters?: AssociatedValues | undefined; headers?: AssociatedValues | undefined },
): Pick<UnauthorizedRequest, 'body' | 'headers' | 'secrets'> {
  // A copy, because the caller may change its own object while the call is in flight.
  const copiedHeaders = headers && { ...headers }
  const secrets = Object.values(copiedHeaders ?? {})
  for (const [name, value] of Object.entries(parameters ?? {})) {
    form.append(name, value)
    secrets.push(value)
  }
  return { headers: copiedHeaders, body: form.toString(), secrets }
}
