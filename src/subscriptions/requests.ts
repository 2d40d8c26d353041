/** The wire form of the subscription calls (interface.md section 4.2; update and unsubscribe: see `Routes`). */
import type { UnauthorizedRequest } from '../http/transport.js'
import type { CreateSubscriptionInput } from './create-input.js'
import type { UpdateSubscriptionParametersInput } from './update-input.js'

/** Method and path of one operation; `{subscriptionId}` in the path stands for the id. */
export interface Route {
  /** Default: that of the operation, see {@link Routes}. */
  readonly method?: 'POST' | 'PUT' | 'DELETE' | undefined
  /** Begins with `/` and is added to `baseUrl`. Default: that of the operation, see {@link Routes}. */
  readonly path?: string | undefined
}

/**
 * The operations whose method and path interface.md does not show (section 4.3). The defaults, `DELETE` and
 * `PUT` of `/api/subscriptions/{subscriptionId}`, come from the service's public developer pages.
 */
export interface Routes {
  /** Default: `DELETE /api/subscriptions/{subscriptionId}`. */
  readonly unsubscribe?: Route | undefined
  /** Default: `PUT /api/subscriptions/{subscriptionId}`. */
  readonly update?: Route | undefined
}

const subscriptionPath = '/api/subscriptions/{subscriptionId}'

export function createUrl(baseUrl: string): string {
  return `${baseUrl}/api/subscriptions`
}

export function createRequest(url: string, input: CreateSubscriptionInput): UnauthorizedRequest {
  const form = new URLSearchParams()
  form.append('notification_type', input.notificationTypes.join(','))
  form.append('username', input.usernames.join(','))
  form.append('callback_url', String(input.callbackUrl))
  if (input.recreateIfExists !== undefined) form.append('recreateIfExists', String(input.recreateIfExists))
  return formRequest('POST', url, input, form)
}

export function updateRequest(
  baseUrl: string,
  route: Route | undefined,
  subscriptionId: number,
  input: UpdateSubscriptionParametersInput,
): UnauthorizedRequest {
  return formRequest(
    route?.method ?? 'PUT',
    subscriptionUrl(baseUrl, route, subscriptionId),
    input,
    new URLSearchParams(),
  )
}

export function unsubscribeRequest(
  baseUrl: string,
  route: Route | undefined,
  subscriptionId: number,
): UnauthorizedRequest {
  return {
    method: route?.method ?? 'DELETE',
    url: subscriptionUrl(baseUrl, route, subscriptionId),
    secrets: [],
  }
}

function subscriptionUrl(baseUrl: string, route: Route | undefined, subscriptionId: number): string {
  return baseUrl + (route?.path ?? subscriptionPath).replaceAll('{subscriptionId}', String(subscriptionId))
}

function formRequest(
  method: UnauthorizedRequest['method'],
  url: string,
  { parameters, headers }: UpdateSubscriptionParametersInput,
  form: URLSearchParams,
): UnauthorizedRequest {
  // Copied: the caller may change its own while the call is under way.
  const copiedHeaders = headers && { ...headers }
  const secrets = Object.values(copiedHeaders ?? {})
  for (const [name, value] of Object.entries(parameters ?? {})) {
    form.append(name, value)
    secrets.push(value)
  }
  return {
    method,
    url,
    headers: copiedHeaders,
    body: form.toString(),
    secrets,
  }
}
