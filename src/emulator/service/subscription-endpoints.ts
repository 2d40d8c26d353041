/** The subscription calls: create, update and unsubscribe (docs/service.md, Endpoints). */
import * as z from 'zod'
import { notificationTypes } from '../../notification-types.js'
import { isInsecureLoopback, parsedUrl } from '../../shared/addresses.js'
import { framingHeaders, headerName } from '../../shared/headers.js'
import { createFields, endpoints, type ResolvedRoute, resolvedRoute } from '../../shared/routes.js'
import { excerpt } from '../../shared/text.js'
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
import type { SubscriptionStore } from './subscription-store.js'
import type { TokenIssuer } from './token-endpoint.js'

type Rules = Pick<ResolvedEmulatorOptions, 'username' | 'password' | 'permittedHeaders' | 'routes'>

export function subscriptionEndpoints(
  rules: Rules,
  tokens: TokenIssuer,
  store: SubscriptionStore,
): Endpoint[] {
  const update = resolvedRoute('update', rules.routes?.update)
  const unsubscribe = resolvedRoute('unsubscribe', rules.routes?.unsubscribe)

  /** Either kind of Authorization will do (docs/service.md, Authentication). */
  function authorize({ headers }: ServiceRequest): void {
    const { isBasic = true, value } = parseAuthorization(headers.get('authorization')) ?? {}
    const { username, password } = rules
    const accepted = isBasic ? value === `${username}:${password}` : tokens.accepts(`${value}`)
    if (accepted) return
    const invalidToken = isBasic ? '' : ', error="invalid_token"'
    const challenge = `Bearer realm="notifications"${invalidToken}, Basic realm="notifications"`
    const message = 'Credentials or access token are missing, wrong, expired or revoked'
    throw new Refusal(401, message, 'unauthorized', { 'www-authenticate': challenge })
  }

  async function answerCreate(request: ServiceRequest): Promise<Response> {
    authorize(request)
    requireForm(request)
    const { recreateIfExists, ...wanted } = readCreateForm(request, rules)
    const { outcome, subscriptionId } = store.create(wanted, recreateIfExists)
    if (outcome === 'created') {
      request.about.subscriptionId = subscriptionId
      return Response.json({ subscription_id: subscriptionId }, { status: endpoints.create.success })
    }
    const [code, message] =
      outcome === 'duplicate'
        ? ['duplicate_subscription', 'is identical; recreateIfExists=true would replace it']
        : ['partial_overlap', 'covers some of the users and types at this callback URL']
    throw new Refusal(409, `Subscription ${subscriptionId} ${message}`, code, {}, subscriptionId)
  }

  /** That a success is a 200 without a body is the emulator's choice: no public page says it (docs/service.md, Endpoints). */
  async function answerUpdate(request: ServiceRequest): Promise<Response> {
    authorize(request)
    requireForm(request)
    const subscriptionId = idOf(update, request)
    // Checked before the values: an ended subscription is always a 404.
    if (store.get(subscriptionId) === undefined) throw notFound(subscriptionId)
    store.updateParameters(subscriptionId, readUpdate(update, request, rules))
    return new Response(null, { status: endpoints.update.success })
  }

  /** The status of a success is one of those marked † (docs/service.md, Endpoints). */
  async function answerUnsubscribe(request: ServiceRequest): Promise<Response> {
    authorize(request)
    if (request.variable === '') requireForm(request)
    const subscriptionId = idOf(unsubscribe, request)
    if (!store.end(subscriptionId, 'unsubscribed')) throw notFound(subscriptionId)
    return new Response(null, { status: endpoints.unsubscribe.success })
  }

  return [
    { operation: 'create', ...endpoints.create, answer: answerCreate },
    { operation: 'update', ...update, answer: answerUpdate },
    { operation: 'unsubscribe', ...unsubscribe, answer: answerUnsubscribe },
  ]
}

function requireForm({ headers }: ServiceRequest): void {
  if (isForm(headers)) return
  throw new Refusal(415, `Content-Type must be ${formType}`, 'unsupported_media_type')
}

/** @throws `Refusal` (400) if the body must have the id, and has not */
function idOf({ idField }: ResolvedRoute, { variable, body, about }: ServiceRequest): number {
  const id = variable || parseForm(body).get(idField ?? '')
  if (!/^\d+$/.test(id ?? '')) throw invalid(`${idField} must be the id of a subscription`)
  about.subscriptionId = Number(id)
  return about.subscriptionId
}

function notFound(subscriptionId: number): Refusal {
  return new Refusal(404, `There is no active subscription ${subscriptionId}`, 'not_found')
}

const text = z.string('is missing').min(1, 'is missing')

const list = text
  .transform((items) => items.split(','))
  .refine((items) => !items.includes(''), { error: 'has an empty item', abort: true })
  // Taken as they are, such items would never match a user or a type.
  .refine((items) => items.every((item) => item === item.trim()), 'has spaces around an item')

const type = z.enum(notificationTypes, {
  error: ({ input }) => `${JSON.stringify(excerpt(String(input), 100))} does not exist`,
})

/** The fields of a create request that are not associated parameters. */
const createSchema = z.object({
  notification_type: list.pipe(z.array(type)),
  username: list,
  callback_url: text.refine(isCallbackUrl, 'must be an absolute URL with https:, or with http: on loopback'),
  recreateIfExists: z
    .stringbool({ truthy: ['true'], falsy: ['false'], error: 'must be true or false' })
    .default(false),
} satisfies Record<(typeof createFields)[number], z.ZodType>)

function isCallbackUrl(text: string): boolean {
  const url = parsedUrl(text)
  return url !== undefined && (url.protocol === 'https:' || isInsecureLoopback(url))
}

/** @throws `Refusal` (400) if a field is missing or wrong */
function readCreateForm({ body, headers }: ServiceRequest, rules: Rules) {
  const form = parseForm(body)
  const { data, error } = createSchema.safeParse(Object.fromEntries(form))
  const [issue] = error?.issues ?? []
  if (data === undefined) throw invalid(`${String(issue?.path[0])} ${issue?.message}`)
  return {
    notificationTypes: [...new Set(data.notification_type)],
    usernames: [...new Set(data.username)],
    callbackUrl: data.callback_url,
    recreateIfExists: data.recreateIfExists,
    parameters: readParameters(form, headers, rules.permittedHeaders),
  }
}

function readUpdate(
  { idField }: ResolvedRoute,
  { body, headers }: ServiceRequest,
  rules: Rules,
): Record<string, string> {
  const form = parseForm(body)
  form.delete(idField ?? '')
  const field = createFields.find((name) => form.has(name))
  if (field !== undefined) throw invalid(`${field} is no parameter and cannot be changed`)
  const parameters = readParameters(form, headers, rules.permittedHeaders)
  if (Object.keys(parameters).length === 0) throw invalid('at least one parameter must be given')
  return parameters
}

function readParameters(
  form: ReadonlyMap<string, string>,
  headers: Headers,
  permittedHeaders: readonly string[],
): Record<string, string> {
  const given = [...form].filter(([name]) => !Object.hasOwn(createSchema.shape, name))
  for (const name of permittedHeaders) {
    const value = headers.get(name)
    if (value !== null) given.push([name, value])
  }
  const names = new Set<string>()
  for (const [name, value] of given) {
    const shown = excerpt(name, 100)
    if (!headerName.test(name)) throw invalid(`${JSON.stringify(shown)} cannot be the name of a header`)
    const lowerCase = name.toLowerCase()
    // The client refuses some more names.
    if (framingHeaders.includes(lowerCase)) throw invalid(`${name} belongs to the callback request itself`)
    if (!headerValuePattern.test(value)) throw invalid(`the value of ${shown} cannot be sent in a header`)
    // Callbacks would carry two headers of one name, and their receiver would see neither value.
    if (names.has(lowerCase)) throw invalid(`${shown} is given more than once`)
    names.add(lowerCase)
  }
  return Object.fromEntries(given)
}

// RFC 9110 section 5.5, with the bytes above ASCII that HTTP/1.1 carries as they are.
const headerValuePattern = /^[\t\x20-\x7e\x80-\xff]*$/
