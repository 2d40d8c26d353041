/** The subscription calls: create, update and unsubscribe (docs/service.md, Endpoints). */
import { type NotificationType, notificationTypes } from '../../notification-types.js'
import { isInsecureLoopback, parsedUrl } from '../../shared/addresses.js'
import { headerName } from '../../shared/headers.js'
import type { ResolvedRoute } from '../../shared/routes.js'
import { excerpt } from '../../shared/text.js'
import type { ResolvedEmulatorOptions } from '../options.js'
import {
  formType,
  invalid,
  isReservedHeader,
  mediaTypeOf,
  parseAuthorization,
  parseForm,
  parseJsonObject,
  Refusal,
  type ServiceAnswer,
  type ServiceRequest,
} from './requests.js'
import type { SubscriptionRequest, SubscriptionStore } from './subscription-store.js'
import type { TokenIssuer } from './token-endpoint.js'

/** What subscription calls are checked against. */
type Rules = Pick<
  ResolvedEmulatorOptions,
  'username' | 'password' | 'permittedHeaders' | 'allowInsecureLoopback'
>

export class SubscriptionOperations {
  readonly #rules: Rules
  readonly #tokens: TokenIssuer
  readonly #store: SubscriptionStore

  constructor(rules: Rules, tokens: TokenIssuer, store: SubscriptionStore) {
    this.#rules = rules
    this.#tokens = tokens
    this.#store = store
  }

  async create(request: ServiceRequest): Promise<ServiceAnswer> {
    await this.#authorize(request)
    requireFormat(request, 'form')
    const result = this.#store.create(readCreateForm(request, this.#rules))
    if (result.outcome === 'created') {
      const { subscriptionId } = result
      return { status: 201, body: { subscription_id: subscriptionId }, subscriptionId }
    }
    const [code, message] =
      result.outcome === 'duplicate'
        ? ['duplicate_subscription', 'is identical; recreateIfExists=true would replace it']
        : ['partial_overlap', 'covers some of the users and types at this callback URL']
    const subscriptionId = result.conflictsWith
    throw new Refusal(409, `Subscription ${subscriptionId} ${message}`, { code, subscriptionId })
  }

  /**
   * Method and path come from the service's public developer pages (docs/service.md, Endpoints); the
   * status of success was not readable there, so 200 with an empty body is the emulator's choice.
   */
  async update(route: ResolvedRoute, request: ServiceRequest): Promise<ServiceAnswer> {
    await this.#authorize(request)
    requireFormat(request, route.format)
    const subscriptionId = idOf(route, request)
    // Checked before the values: an ended subscription is always a 404.
    if (!this.#store.isActive(subscriptionId)) throw notFound(subscriptionId)
    this.#store.updateParameters(subscriptionId, readUpdate(route, request, this.#rules))
    return { status: 200, subscriptionId }
  }

  /** Method, path and statuses come from the service's public developer pages (docs/service.md, Endpoints). */
  async unsubscribe(route: ResolvedRoute, request: ServiceRequest): Promise<ServiceAnswer> {
    await this.#authorize(request)
    if (request.variable === '') requireFormat(request, route.format)
    const subscriptionId = idOf(route, request)
    if (!this.#store.end(subscriptionId, 'unsubscribed')) throw notFound(subscriptionId)
    return { status: 204, subscriptionId }
  }

  /** Either kind of Authorization will do (docs/service.md, Authentication). */
  async #authorize({ headers }: ServiceRequest): Promise<void> {
    const { isBasic = true, value } = parseAuthorization(headers.get('authorization')) ?? {}
    const { username, password } = this.#rules
    const accepted = isBasic ? value === `${username}:${password}` : await this.#tokens.accepts(`${value}`)
    if (accepted) return
    const invalidToken = isBasic ? '' : ', error="invalid_token"'
    const challenge = `Bearer realm="notifications"${invalidToken}, Basic realm="notifications"`
    throw new Refusal(401, 'Credentials or access token are missing, wrong, expired or revoked', {
      code: 'unauthorized',
      headers: { 'www-authenticate': challenge },
    })
  }
}

function requireFormat({ headers }: ServiceRequest, format: ResolvedRoute['format']): void {
  const type = format === 'json' ? 'application/json' : formType
  if (mediaTypeOf(headers.get('content-type')) === type) return
  throw new Refusal(415, `Content-Type must be ${type}`, { code: 'unsupported_media_type' })
}

/** @throws `Refusal` (400) if the body must have the id, and has not */
function idOf({ format, idField }: ResolvedRoute, { variable, body }: ServiceRequest): number {
  const id = variable || fieldsIn(format, body).get(idField ?? '')
  if (id !== undefined && /^\d+$/.test(id)) return Number(id)
  throw invalid(`${idField} must be the id of a subscription`)
}

function fieldsIn(format: ResolvedRoute['format'], body: string): Map<string, string> {
  return format === 'json' ? parseJsonObject(body) : parseForm(body)
}

function notFound(subscriptionId: number): Refusal {
  return new Refusal(404, `There is no active subscription ${subscriptionId}`, { code: 'not_found' })
}

/** The fields of a create request that are not associated parameters. */
const subscriptionFields = new Set(['notification_type', 'username', 'callback_url', 'recreateIfExists'])

/** @throws `Refusal` (400) if a field is missing or wrong */
function readCreateForm({ body, headers }: ServiceRequest, rules: Rules): SubscriptionRequest {
  const form = parseForm(body)
  return {
    notificationTypes: new Set(readList(form, 'notification_type').map(readNotificationType)),
    usernames: new Set(readList(form, 'username')),
    callbackUrl: readCallbackUrl(requiredField(form, 'callback_url'), rules.allowInsecureLoopback),
    recreateIfExists: readBoolean(form, 'recreateIfExists'),
    parameters: readParameters(form, headers, rules.permittedHeaders),
  }
}

/**
 * The parameters that an update changes: fields of the body and permitted headers, at least one in all.
 *
 * @throws `Refusal` (400), also for the fields of a create request that are no parameters: they cannot be changed
 */
function readUpdate(
  { format, idField }: ResolvedRoute,
  { body, headers }: ServiceRequest,
  rules: Rules,
): Record<string, string> {
  const form = fieldsIn(format, body)
  if (idField !== undefined) form.delete(idField)
  for (const field of subscriptionFields) {
    if (form.has(field)) throw invalid(`${field} is no parameter and cannot be changed`)
  }
  const parameters = readParameters(form, headers, rules.permittedHeaders)
  if (Object.keys(parameters).length === 0) throw invalid('at least one parameter must be given')
  return parameters
}

function requiredField(form: ReadonlyMap<string, string>, name: string): string {
  const value = form.get(name)
  if (value === undefined || value === '') throw invalid(`${name} is missing`)
  return value
}

function readList(form: ReadonlyMap<string, string>, name: string): string[] {
  const items = requiredField(form, name).split(',')
  if (items.some((item) => item === '')) throw invalid(`${name} has an empty item`)
  // Taken as they are, such items would never match a user or a type.
  if (items.some((item) => item !== item.trim())) throw invalid(`${name} has spaces around an item`)
  return items
}

function readNotificationType(value: string): NotificationType {
  const type = notificationTypes.find((known) => known === value)
  if (type === undefined)
    throw invalid(`notification_type ${JSON.stringify(excerpt(value, 100))} does not exist`)
  return type
}

/** The URL as it was given: that text is what "the same callback URL" is about. */
function readCallbackUrl(value: string, allowInsecureLoopback: boolean): string {
  const url = parsedUrl(value)
  if (url === undefined) throw invalid('callback_url is not an absolute URL')
  const isInsecure = isInsecureLoopback(url)
  if (url.protocol === 'https:' || (isInsecure && allowInsecureLoopback)) return value
  const advice = isInsecure
    ? ', unless the emulator is started with --allow-insecure-loopback (startEmulator({ allowInsecureLoopback: true }))'
    : ''
  throw invalid(`callback_url must begin with https:${advice}`)
}

function readBoolean(form: ReadonlyMap<string, string>, name: string): boolean {
  const value = form.get(name)?.toLowerCase() ?? 'false'
  if (value !== 'true' && value !== 'false') throw invalid(`${name} must be true or false`)
  return value === 'true'
}

function readParameters(
  form: ReadonlyMap<string, string>,
  headers: Headers,
  permittedHeaders: readonly string[],
): Record<string, string> {
  const given = [...form].filter(([name]) => !subscriptionFields.has(name))
  for (const name of permittedHeaders) {
    const value = headers.get(name)
    if (value !== null) given.push([name, value])
  }
  const names = new Set<string>()
  for (const [name, value] of given) {
    const shown = excerpt(name, 100)
    if (!headerName.test(name)) throw invalid(`${JSON.stringify(shown)} cannot be the name of a header`)
    if (isReservedHeader(name)) throw invalid(`${name} belongs to the callback request itself`)
    if (!headerValuePattern.test(value)) throw invalid(`the value of ${shown} cannot be sent in a header`)
    // Callbacks would carry two headers of one name, and their receiver would see neither value.
    if (names.has(name.toLowerCase())) throw invalid(`${shown} is given more than once`)
    names.add(name.toLowerCase())
  }
  return Object.fromEntries(given)
}

// RFC 9110 section 5.5, with the bytes above ASCII that HTTP/1.1 carries as they are.
const headerValuePattern = /^[\t\x20-\x7e\x80-\xff]*$/
