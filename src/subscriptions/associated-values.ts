/**
 * The name/value pairs that come back as headers on every callback (docs/service.md, Resources and Endpoints):
 * `parameters` travel in the form body, `headers` as request headers.
 */
import * as z from 'zod'
import { headerName, headerNameRule, headerValue, headerValueRule } from '../shared/header-syntax.js'

/**
 * Values by name, which come back as headers of the same name on every callback (docs/service.md, Resources). Names
 * that differ in case only are the same name.
 */
export type AssociatedValues = Readonly<Record<string, string>>

/** Form fields with a meaning of their own (docs/service.md, Endpoints). */
const formFields = ['notification_type', 'username', 'callback_url', 'recreateifexists']

/** Headers that describe the message or the connection: the sender of the callback must set these itself. */
const messageHeaders = [
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/** Headers that the client sets on its own requests. */
const requestHeaders = ['accept', 'authorization']

export const parametersSchema = z.lazy(() =>
  associatedValuesSchema(
    new Map([
      ...formFields.map((name) => [name, 'it is a field of the request'] as const),
      ...messageHeaders.map((name) => [name, 'as a header it would break the callback'] as const),
    ]),
  ),
)

export const headersSchema = z.lazy(() =>
  associatedValuesSchema(
    new Map(
      [...messageHeaders, ...requestHeaders].map((name) => [name, 'it is a header of the request'] as const),
    ),
  ),
)

/**
 * The schema of name/value pairs. The pairs are checked here and not by `z.record`, which drops a `__proto__` key.
 *
 * @param reserved - names that cannot be used, in lower case, and why
 */
function associatedValuesSchema(reserved: ReadonlyMap<string, string>) {
  return z
    .custom<AssociatedValues>(isRecord, 'must be an object of names and values')
    .check(({ value: values, issues }) => {
      const seen = new Set<string>()
      for (const name of Object.keys(values)) {
        const value: unknown = values[name]
        const refuse = (message: string) =>
          issues.push({ code: 'custom', continue: true, input: value, path: [name], message })
        const lowerCase = name.toLowerCase()
        if (!headerName.test(name)) refuse(`cannot be the name of an HTTP header: ${headerNameRule}`)
        if (typeof value !== 'string') refuse('must be text')
        else if (!headerValue.test(value)) {
          refuse(`has a value that cannot stand in an HTTP header: ${headerValueRule}`)
        }
        const reason = name === '__proto__' ? 'objects take it for their prototype' : reserved.get(lowerCase)
        if (reason !== undefined) refuse(`is reserved: ${reason}`)
        if (seen.has(lowerCase)) refuse('is given twice: header names are the same in any case')
        seen.add(lowerCase)
      }
    })
    .meta({ type: 'object', additionalProperties: { type: 'string' } })
}

function isRecord(values: unknown): boolean {
  return typeof values === 'object' && values !== null && !Array.isArray(values)
}

/** Refuses a name that stands in both kinds: on the callback they would be one header with two values. */
export function refuseSharedNames({
  value: { parameters, headers },
  issues,
}: z.core.ParsePayload<{
  parameters?: AssociatedValues | undefined
  headers?: AssociatedValues | undefined
}>): void {
  if (parameters === undefined || headers === undefined) return
  const parameterNames = new Set(Object.keys(parameters).map((name) => name.toLowerCase()))
  for (const name of Object.keys(headers)) {
    if (!parameterNames.has(name.toLowerCase())) continue
    const message = 'is a parameter, too: on callbacks both would be the same header'
    issues.push({ code: 'custom', continue: true, input: headers, path: ['headers', name], message })
  }
}
