/**
 * The JSON value of a body. Content counts before labels: a body that is JSON as it came is read, whatever its headers say.
 * They only help with bodies in another charset than UTF-8, and with compressed ones.
 */
import { messageOf, wholeMessageOf } from '../shared/text.js'
import { parseJson } from '../shared/validation.js'
import { type Bytes, errorOf, invalidDelivery, isBytes, type ReadBody, readWebStream } from './body.js'
import type { RequestHeaders } from './headers.js'

/** A body that can be read. */
export interface Content {
  /** The body without compression and base64; as text if it was not in UTF-8. */
  readonly body: unknown
  /** Its JSON value. */
  readonly value: unknown
}

/**
 * Reads a body that is not compressed: text, or bytes in UTF-8, UTF-16 or the declared charset, each of them also in base64, as
 * a text in JSON, or as a `Buffer` in JSON. Any other value that was parsed before is returned as it is.
 *
 * @throws `InvalidDeliveryError` if there is no JSON; its message quotes nothing of the body
 */
export function contentOf(body: unknown): Content {
  const found = jsonIn(body)
  if (typeof found !== 'string') return found
  const advice = ': decompress it first, or let a DeliveryReceiver read it'
  throw invalidDelivery(body, found.startsWith(compressed) ? found + advice : found)
}

/**
 * As {@link contentOf}, for a body that may be compressed: the service compresses nothing (docs/service.md, Delivery), but a
 * proxy may. Each layer counts in `maxBytes`.
 *
 * @returns `undefined` if the body is too large
 * @throws `InvalidDeliveryError`, with the body decompressed as far as that goes
 */
export function readContent(
  body: unknown,
  headers: RequestHeaders,
  maxBytes: number,
): Content | Promise<Content | undefined> {
  const found = jsonIn(body, headers)
  return typeof found === 'string' ? decompressedContent(body, headers, maxBytes, found) : found
}

/** The content, or what is wrong with the body: the rest of a sentence that begins with "the body". */
function jsonIn(body: unknown, headers?: RequestHeaders, mayBeWrapped = true): Content | string {
  const { text, value, inside } = opened(body)
  const found = inside === undefined || !mayBeWrapped ? undefined : jsonIn(inside, headers, false)
  if (typeof found === 'object') return found
  if (typeof found === 'string' && found.startsWith(compressed)) return found
  const inCharset = value === undefined && isBytes(body) ? jsonInCharset(body, headers) : undefined
  if (inCharset) return inCharset
  const isReadable = value !== undefined || body === undefined
  return isReadable ? { body, value } : problemOf(text, body)
}

/**
 * The text of a body, its JSON value, and what adapters, parsers and queues have wrapped in it: a text in JSON, bytes in base64, and
 * what {@link insideObject} finds. A value that was parsed before has no text, and bytes in another charset neither.
 */
function opened(body: unknown) {
  if (typeof body !== 'string' && !isBytes(body)) return { value: body, inside: insideObject(body) }
  const text = isBytes(body) ? decodedText(body) : body
  const value = text === undefined ? undefined : valueIn(text)
  if (value === undefined) return { text, value, inside: bytesOfBase64(text) }
  return { text, value, inside: typeof value === 'string' ? value : insideObject(value) }
}

/** The value of JSON, or of an object in JSON with something else around: a mark, NULs, a prefix, the boundaries of a form. */
function valueIn(text: string): unknown {
  const value = parseJson(text)
  return value === undefined ? parseJson(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)) : value
}

/**
 * Bytes in JSON, as `{ type: 'Buffer', data: [123, 34] }`, `{ 0: 123, 1: 34 }` or `[123, 34]`; or JSON that a form parser has
 * split at each `&` and `=`.
 */
function insideObject(value: unknown): string | Uint8Array | undefined {
  try {
    const { data } = Object(value)
    if (Array.isArray(data)) return Uint8Array.from(data)
    const [name = ''] = Object.keys(Object(value))
    if (name === '0') return Uint8Array.from(Object.values(Object(value)))
    if (!name.startsWith('{')) return undefined
    return Object.entries(Object(value))
      .map(([key, rest]) => (rest === '' ? key : `${key}=${rest}`))
      .join('&')
  } catch {
    // Its getters throw.
    return undefined
  }
}

function jsonInCharset(body: Bytes, headers?: RequestHeaders): Content | undefined {
  const declared = /;\s*charset\s*=\s*["']?([^\s;"']{1,40})/i.exec(headers?.get('content-type') ?? '')?.[1]
  // No other JSON is JSON in UTF-16, too.
  for (const charset of ['utf-16le', 'utf-16be', declared]) {
    const text = decodedText(body, charset)
    const value = text === undefined ? undefined : parseJson(text)
    if (value !== undefined) return { body: text, value }
  }
  return undefined
}

const compressed = 'is compressed with'

/** Why there is no JSON in a body with this text. */
function problemOf(text: string | undefined, body: unknown): string {
  const format = isBytes(body) ? formatOf(bytesOf(body)) : undefined
  if (format !== undefined) return `${compressed} ${format}`
  if (text === undefined) return 'is not UTF-8'
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

/** `undefined` for bytes that are not in the charset, and for a charset that the runtime does not know. */
function decodedText(bytes: Bytes, charset?: string): string | undefined {
  try {
    utf8 ??= new TextDecoder('utf-8', { fatal: true })
    return (charset === undefined ? utf8 : new TextDecoder(charset, { fatal: true })).decode(bytesOf(bytes))
  } catch {
    return undefined
  }
}

export function bytesOf(body: Bytes): Uint8Array {
  return ArrayBuffer.isView(body)
    ? new Uint8Array(body.buffer, body.byteOffset, body.byteLength)
    : new Uint8Array(body)
}

/** The bytes of a text in base64, perhaps on many lines, or `undefined`: serverless platforms and queues write bodies so. */
export function bytesOfBase64(body: unknown): Uint8Array | undefined {
  if (typeof body !== 'string') return undefined
  try {
    const binary = atob(body.replace(/-/g, '+').replace(/_/g, '/'))
    return Uint8Array.from(binary, (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

/** Proxies compress once, perhaps twice. */
const maxLayers = 3

async function decompressedContent(
  body: unknown,
  headers: RequestHeaders,
  maxBytes: number,
  problem: string,
): Promise<Content | undefined> {
  const labels = headers.valuesOf('content-encoding').join().toLowerCase()
  const codings = new Set(labels.split(/[\s,]/))
  let bytes = encodedBytes(body)
  let received = body
  let reason = problem
  for (let layer = 0; bytes !== undefined && layer < maxLayers; layer += 1) {
    const format = formatOf(bytes) ?? formatWithoutSignature(codings)
    if (format === undefined) break
    const read = await decompress(bytes, format, maxBytes)
    if (read === undefined) return undefined
    const found = jsonIn(read.body, headers)
    // Also after a failure: a checksum or an end may be missing behind content that is whole.
    if (typeof found === 'object') return found
    if (read.failure !== undefined) {
      reason += `, and cannot be decompressed (${messageOf(read.failure.cause ?? read.failure)})`
      break
    }
    received = bytes = read.body
    reason = found
  }
  // Only known names are shown: a message holds no value of a header.
  const isKnown = ['gzip', 'deflate', 'br', 'zstd'].includes(labels)
  if (labels !== '') reason += `; its content-encoding is ${isKnown ? labels : 'another'}`
  throw invalidDelivery(received, reason)
}

/** The bytes of a body, or those that are wrapped in it. */
function encodedBytes(body: unknown): Uint8Array | undefined {
  const { inside } = opened(body)
  if (isBytes(inside)) return inside
  return isBytes(body) ? bytesOf(body) : undefined
}

/** By the first bytes, which cannot begin JSON (RFC 1952 section 2.3.1, RFC 8878 section 3.1.1, RFC 1950 section 2.2). */
function formatOf([a = 0, b = 0, c, d]: Uint8Array): string | undefined {
  if (a === 0x1f && b === 0x8b) return 'gzip'
  if (a === 0x28 && b === 0xb5 && c === 0x2f && d === 0xfd) return 'zstd'
  return (a & 0x8f) === 8 && (b & 0x20) === 0 && (a * 256 + b) % 31 === 0 ? 'deflate' : undefined
}

/** Two formats begin like anything else: each is tried once, if a label names it. */
function formatWithoutSignature(codings: Set<string>): string | undefined {
  if (codings.delete('br')) return 'brotli'
  return codings.delete('deflate') ? 'deflate-raw' : undefined
}

/** What comes out, up to `maxBytes`. */
async function decompress(
  bytes: Uint8Array,
  format: string,
  maxBytes: number,
): Promise<ReadBody<Uint8Array>> {
  try {
    // Narrows the type only: a body is never in shared memory.
    const compressed: ReadableStream<Uint8Array> = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream()
    return await readWebStream(compressed.pipeThrough(decompressorOf(format)), maxBytes)
  } catch (thrown) {
    // This runtime does not know the format.
    return { body: noBytes, failure: errorOf(noBytes, thrown) }
  }
}

const noBytes = new Uint8Array()

/** The types of Node.js and of the web disagree on what may be written. */
interface Decompressor {
  readonly readable: ReadableStream<Uint8Array>
  readonly writable: WritableStream<Uint8Array>
}

/** Every runtime decompresses gzip and deflate. Node.js has the other formats, too, older ones not as web streams. */
function decompressorOf(format: string): Decompressor {
  try {
    return new DecompressionStream(format as 'gzip') as object as Decompressor
  } catch (error) {
    const load = globalThis.process?.getBuiltinModule
    const zlib = Object(load?.('node:zlib'))
    const make = format === 'brotli' ? zlib.createBrotliDecompress : zlib.createZstdDecompress
    if (make === undefined) throw error
    return load('node:stream').Duplex.toWeb(make()) as object as Decompressor
  }
}
