/** The JSON value of a body: content counts before labels, so no header is looked at. */
import { wholeMessageOf } from '../shared/text.js'
import { parseJson } from '../shared/validation.js'
import { type Bytes, invalidDelivery, isBytes } from './body.js'

/**
 * The value of text in JSON, of bytes in UTF-8, or any other value, which was parsed before.
 *
 * @throws `InvalidDeliveryError` if there is no JSON; its message quotes nothing of the body
 */
export function contentOf(body: unknown): { readonly value: unknown } {
  const text = isBytes(body) ? decodedText(body) : body
  if (typeof text !== 'string' && !isBytes(body)) return { value: body }
  const value =
    typeof text === 'string' ? (parseJson(text) ?? parseJson(text.replace(/^\ufeff/, ''))) : undefined
  if (value === undefined) throw invalidDelivery(body, problemOf(body, text))
  return { value }
}

/** Why there is no JSON in a body with this text. */
function problemOf(body: unknown, text: unknown): string {
  const [first, second] = isBytes(body) ? bytesOf(body) : []
  if (first === 0x1f && second === 0x8b) return 'is compressed with gzip: decompress it before the receiver'
  if (typeof text !== 'string') return 'is not UTF-8'
  if (text.trim() === '') return 'is empty'
  try {
    JSON.parse(text)
  } catch (error) {
    // Engines quote a few characters around the fault, and some of them name its position.
    const [where] = /position \d+|end of JSON/i.exec(wholeMessageOf(error)) ?? []
    if (where !== undefined) return `is not JSON (fault at ${where})`
  }
  return 'is not JSON'
}

/** Made when the first body is read: not every test environment that loads this package has one. */
let utf8: InstanceType<typeof TextDecoder> | undefined

/** `undefined` for bytes that are no UTF-8. A byte order mark is left out. */
function decodedText(bytes: Bytes): string | undefined {
  try {
    utf8 ??= new TextDecoder('utf-8', { fatal: true })
    return utf8.decode(bytesOf(bytes))
  } catch {
    return undefined
  }
}

export function bytesOf(body: Bytes): Uint8Array {
  return ArrayBuffer.isView(body)
    ? new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
    : new Uint8Array(body)
}
