/** The body of a callback: its kinds and its limits, its JSON value, and the error for a body that is no delivery. */
import { InvalidDeliveryError, type Issue } from '../errors.js'
import { messageOf, wholeMessageOf } from '../shared/text.js'
import { formatIssues } from '../shared/validation.js'
import { headerOf } from './headers.js'

export const bodyTimeoutMs = 10_000

/** What to do if something else has read the body. */
export const routeAdvice =
  'put the route before every body parser, by the adapter of your framework (docs/receiver.md)'

/**
 * The body of a request, or `undefined` if the body is too large. The body is in an object, because a promise looks for a
 * `then` in its result: with bytes that takes a tenth of a callback, and a parsed body may be a promise by mistake.
 */
export type ReadBody<Body = unknown> =
  | {
      readonly body: Body
      /** Why a part of the body may be missing. If only the declared length was wrong, the body is whole. */
      readonly failure?: InvalidDeliveryError
    }
  | undefined

/** A body that is no text and was not parsed. */
type Bytes = ArrayBuffer | ArrayBufferView

/** An `ArrayBuffer` or any view on one. By tag and not by instanceof: other realms (a worker's vm, Jest) have their own. */
export function isBytes(body: unknown): body is Bytes {
  return ArrayBuffer.isView(body) || Object.prototype.toString.call(body) === '[object ArrayBuffer]'
}

export function bytesOf(body: Bytes): Uint8Array {
  return ArrayBuffer.isView(body)
    ? new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
    : new Uint8Array(body)
}

/** Whether a body is larger than `maxBytes`. An object that was parsed before has no size. */
export function isLarger(body: unknown, maxBytes: number): boolean {
  if (typeof body !== 'string') return isBytes(body) && body.byteLength > maxBytes
  // A UTF-16 code unit is one to three bytes of UTF-8: most texts need no counting.
  return body.length * 3 > maxBytes && new Blob([body]).size > maxBytes
}

/**
 * The JSON value of a body, whatever its headers say: the service sends JSON in UTF-8 (docs/service.md, Delivery). What is
 * neither text nor bytes was parsed before, and is the value itself.
 *
 * @param headers - only explain why a body cannot be read
 * @throws `InvalidDeliveryError` if there is no JSON; its message quotes nothing of the body
 */
export function contentOf(body: unknown, headers?: unknown): unknown {
  if (typeof body !== 'string' && !isBytes(body)) return body
  const text = typeof body === 'string' ? body : decodedText(body, headers)
  try {
    // `TextDecoder` leaves the mark out. Text that something else has decoded may still begin with one.
    return JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text)
  } catch (error) {
    throw invalidDelivery(body, textProblem(text, error))
  }
}

/** Made when the first body is read: not every test environment that loads this package has a `TextDecoder`. */
let utf8: InstanceType<typeof TextDecoder> | undefined

function decodedText(body: Bytes, headers: unknown): string {
  try {
    utf8 ??= new TextDecoder('utf-8', { fatal: true })
    return utf8.decode(bytesOf(body))
  } catch {
    const [first, second] = bytesOf(body)
    const label =
      first === 0x1f && second === 0x8b ? 'gzip' : headerOf(headers, 'content-encoding')?.toLowerCase()
    // A message holds no other value of a header.
    const compression = ['gzip', 'deflate', 'br', 'zstd'].find((name) => name === label)
    const compressed = `is compressed with ${compression}, which this service does not do`
    throw invalidDelivery(body, compression ? compressed : 'is not UTF-8')
  }
}

function textProblem(text: string, error: unknown): string {
  if (text.trim() === '') return 'is empty'
  if (text.includes('\0')) return 'is not UTF-8: it has NUL characters, as UTF-16 has'
  // Engines quote a few characters around the fault, and some of them name its position.
  const [where] = /position \d+|end of JSON/i.exec(wholeMessageOf(error)) ?? []
  return where === undefined ? 'is not JSON' : `is not JSON (fault at ${where})`
}

/**
 * JSON on one line.
 *
 * @param body - the body of the error
 * @throws `InvalidDeliveryError` if JSON cannot hold the value: a bigint, a circular object, thousands of levels
 */
export function jsonOf(value: unknown, body = value): string {
  try {
    const text = JSON.stringify(value)
    if (text === undefined) throw new TypeError('JSON has no such value')
    return text
  } catch (error) {
    throw invalidDelivery(body, `cannot be written as JSON (${messageOf(error)})`, error)
  }
}

/** A body of 1 MB may have 250,000 issues, and each log line and dead letter would have all of them. */
const maxIssues = 20

/** Its message is short for every body. @param problem - issues, or the rest of a sentence that begins with "the body" */
export function invalidDelivery(
  body: unknown,
  problem: string | readonly Issue[],
  cause?: unknown,
): InvalidDeliveryError {
  const issues = typeof problem === 'string' ? [{ path: [], message: `the body ${problem}` }] : problem
  return new InvalidDeliveryError(
    `Not a notification delivery: ${formatIssues(issues)}.`,
    { issues: issues.slice(0, maxIssues), body },
    cause === undefined ? undefined : { cause },
  )
}

/** The error for a body whose reading threw this package's own error, or anything else. */
export function errorOf(body: unknown, thrown: unknown): InvalidDeliveryError {
  return thrown instanceof InvalidDeliveryError
    ? thrown
    : invalidDelivery(body, `cannot be read (${messageOf(thrown)})`, thrown)
}
