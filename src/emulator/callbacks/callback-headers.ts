/** Which parameters of a subscription can travel as a header of its callbacks (docs/service.md, Endpoints). */
import { headerName } from '../../shared/header-syntax.js'

// RFC 9110 section 5.5, with the bytes above ASCII that HTTP/1.1 carries as they are.
const headerValuePattern = /^[\t\x20-\x7e\x80-\xff]*$/

// Each says how the callback itself is sent: a second value would break its framing, its body or its route. The client
// refuses some more names.
const reservedHeaders = new Set([
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

export function isReservedHeader(name: string): boolean {
  return reservedHeaders.has(name.toLowerCase())
}

/** Says why a parameter cannot be sent as a header of the same name and value, or nothing if it can. */
export function headerProblem(name: string, value: string): string | undefined {
  if (!headerName.test(name)) return `${JSON.stringify(name)} cannot be the name of a header`
  if (isReservedHeader(name)) return `${name} belongs to the callback request itself`
  if (!headerValuePattern.test(value)) return `the value of ${name} cannot be sent in a header`
  return undefined
}
