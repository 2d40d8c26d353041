/** Reads the forms of create and update (docs/service.md, Endpoints). */
import { type NotificationType, notificationTypes } from '../../notification-types.js'
import { headerProblem } from '../callbacks/callback-headers.js'
import { parseForm } from './form.js'
import { Refusal } from './refusal.js'
import type { SubscriptionRequest } from './subscription-store.js'

/** How the emulator was told to read subscription calls. */
export interface FormRules {
  readonly permittedHeaders: readonly string[]
  readonly allowInsecureLoopback: boolean
}

/** The fields of a create request that are not associated parameters. */
const subscriptionFields = new Set(['notification_type', 'username', 'callback_url', 'recreateIfExists'])

/** @throws `Refusal` (400) if a field is missing or wrong */
export function readCreateForm(body: string, headers: Headers, rules: FormRules): SubscriptionRequest {
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
 * The parameters that an update changes: form fields and permitted headers, at least one in all.
 *
 * @throws `Refusal` (400), also for the fields of a create request that are no parameters: they cannot be changed
 */
export function readUpdateForm(body: string, headers: Headers, rules: FormRules): Record<string, string> {
  const form = parseForm(body)
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
  if (type === undefined) throw invalid(`notification_type ${JSON.stringify(value)} does not exist`)
  return type
}

/** The URL as it was given: that text is what "the same callback URL" is about. */
function readCallbackUrl(value: string, allowInsecureLoopback: boolean): string {
  if (!URL.canParse(value)) throw invalid('callback_url is not an absolute URL')
  const { protocol, hostname } = new URL(value)
  if (protocol === 'https:') return value
  const isInsecureLoopback = protocol === 'http:' && isLoopback(hostname)
  if (isInsecureLoopback && allowInsecureLoopback) return value
  const advice = isInsecureLoopback
    ? ', unless the emulator is started with --allow-insecure-loopback (startEmulator({ allowInsecureLoopback: true }))'
    : ''
  throw invalid(`callback_url must begin with https:${advice}`)
}

function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(\.\d+){3}$/.test(hostname)
  )
}

function readBoolean(form: ReadonlyMap<string, string>, name: string): boolean {
  switch (form.get(name)?.toLowerCase()) {
    case undefined:
    case 'false':
      return false
    case 'true':
      return true
    default:
      throw invalid(`${name} must be true or false`)
  }
}

function readParameters(
  form: ReadonlyMap<string, string>,
  headers: Headers,
  permittedHeaders: readonly string[],
): Record<string, string> {
  const parameters = new Map<string, [name: string, value: string]>()
  const add = (name: string, value: string) => {
    const problem = headerProblem(name, value)
    if (problem !== undefined) throw invalid(problem)
    // Callbacks would carry two headers of one name, and their receiver would see neither value.
    if (parameters.has(name.toLowerCase())) throw invalid(`${name} is given more than once`)
    parameters.set(name.toLowerCase(), [name, value])
  }
  for (const [name, value] of form) if (!subscriptionFields.has(name)) add(name, value)
  for (const name of new Set(permittedHeaders)) {
    const value = headers.get(name)
    if (value !== null) add(name, value)
  }
  return Object.fromEntries(parameters.values())
}

function invalid(message: string): Refusal {
  return new Refusal(400, 'invalid_request', message)
}
