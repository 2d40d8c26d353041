/** What an endpoint gets, and how it reads headers and forms strictly. A `Refusal` explains a wrong request. */
import { excerpt } from '../../shared/text.js'
import { decodeFormComponent, parseJson } from '../../shared/validation.js'
import type { RecordedRequest } from '../activity.js'

/** What is answered at a method and a path, which may have a query, and the place of a variable in braces. */
export interface Endpoint {
  readonly operation: RecordedRequest['operation']
  readonly method: string
  readonly path: string
  /** @throws `Refusal` */
  answer(request: ServiceRequest): Promise<Response>
}

export interface ServiceRequest {
  readonly headers: Headers
  readonly body: string
  /** The text in the place of the path's variable, or ''. */
  readonly variable: string
  readonly about: About
}

export interface About {
  /** The subscription that the request created or names. */
  subscriptionId?: number
  refusal?: NonNullable<RecordedRequest['refusal']>
}

/**
 * An error answer, thrown where the reason is found. The service's error bodies are not documented (docs/service.md,
 * Errors): here they are `{ error, message }`, at the token endpoint `{ error, error_description }` (RFC 6749 section 5.2).
 */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code = 'invalid_request',
    readonly headers: Readonly<Record<string, string>> = {},
    /** The subscription that is in the way. */
    readonly subscriptionId?: number,
  ) {
    super(message)
  }
}

export function invalid(message: string): Refusal {
  return new Refusal(400, message)
}

/** For Basic the decoded credentials (RFC 7617), for Bearer the token (RFC 6750); nothing for a header of another form. */
export function parseAuthorization(header: string | null): { isBasic: boolean; value: string } | undefined {
  const [, scheme, value = ''] = /^(basic|bearer) +(\S+)$/i.exec(header ?? '') ?? []
  if (scheme === undefined) return undefined
  const isBasic = scheme.toLowerCase() === 'basic'
  return { isBasic, value: isBasic ? Buffer.from(value, 'base64').toString('utf8') : value }
}

export const formType = 'application/x-www-form-urlencoded'

/** Whether the body is a form; parameters of the type, such as a charset, do not matter. */
export function isForm(headers: Headers): boolean {
  return headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase() === formType
}

/** @throws `Refusal` (400) for bad percent-encoding, a missing name, or a duplicate name */
export function parseForm(body: string): Map<string, string> {
  const fields = new Map<string, string>()
  const refuse = (reason: string) => invalid(`The form cannot be read: ${reason}`)
  // `curl --data` says of every body that it is a form. The text of JSON would count as the name of a field.
  if (typeof parseJson(body) === 'object') throw refuse('it is JSON')
  if (decodeFormComponent(body) === undefined) throw refuse('it is not percent-encoded UTF-8')
  for (const [name, value] of new URLSearchParams(body)) {
    if (name === '') throw refuse('a field has no name')
    if (fields.has(name)) throw refuse(`the field ${excerpt(name, 100)} is given more than once`)
    fields.set(name, value)
  }
  return fields
}
