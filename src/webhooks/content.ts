/** The JSON value of a body, whatever its headers say: the service sends JSON in UTF-8 (docs/service.md, Delivery). */
import { wholeMessageOf } from '../shared/text.js'
import { type Bytes, bytesOf, invalidDelivery, isBytes } from './body.js'
import { headerOf } from './headers.js'

/**
 * The value of text in JSON, of bytes in UTF-8, or any other value, which was parsed before.
 *
 * @param headers - only explain why a body cannot be read
 * @throws `InvalidDeliveryError` if there is no JSON; its message quotes nothing of the body
 */
export function contentOf(body: unknown, headers?: unknown): unknown {
  if (typeof body !== 'string' && !isBytes(body)) return body
  const text = typeof body === 'string' ? body : decodedText(body)
  if (text === undefined) throw invalidDelivery(body, encodingProblem(body as Bytes, headers))
  try {
    // `TextDecoder` leaves the mark out. Text that something else has decoded may still begin with one.
    return JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text)
  } catch (error) {
    throw invalidDelivery(body, textProblem(text, error))
  }
}

/** Compression is known by the first bytes, or by a label that is one of these names: a message holds no other value of a header. */
function encodingProblem(body: Bytes, headers: unknown): string {
  const [first, second] = bytesOf(body)
  const label =
    first === 0x1f && second === 0x8b ? 'gzip' : headerOf(headers, 'content-encoding')?.toLowerCase()
  const compression = ['gzip', 'deflate', 'br', 'zstd'].find((name) => name === label)
  return compression ? `is compressed with ${compression}, which this service does not do` : 'is not UTF-8'
}

function textProblem(text: string, error: unknown): string {
  if (text.trim() === '') return 'is empty'
  if (text.includes('\0')) return 'is not UTF-8: UTF-16 has such NUL characters'
  // Engines quote a few characters around the fault, and some of them name its position.
  const [where] = /position \d+|end of JSON/i.exec(wholeMessageOf(error)) ?? []
  return where === undefined ? 'is not JSON' : `is not JSON (fault at ${where})`
}

/** Made when the first body is read: not every test environment that loads this package has one. */
let utf8: InstanceType<typeof TextDecoder> | undefined

function decodedText(bytes: Bytes): string | undefined {
  try {
    utf8 ??= new TextDecoder('utf-8', { fatal: true })
    return utf8.decode(bytesOf(bytes))
  } catch {
    return undefined
  }
}
