/** The JSON value in a callback's body, whatever form the web framework hands it over in. */
import { messageOf } from '../../shared/excerpt.js'
import { Failure } from './failure.js'

export type Bytes = NonNullable<Parameters<(typeof utf8)['decode']>[0]>

const byteOrderMark = '\uFEFF'
// `ignoreBOM` keeps the byte order mark, which `valueOfText` leaves out.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Reads text, bytes (an `ArrayBuffer` or any view on one) or a value that was parsed before. One byte order
 * mark at the start is ignored.
 *
 * @throws `Failure` if there is no JSON value in it
 */
export function valueOfBody(body: unknown): unknown {
  if (typeof body === 'string') return valueOfText(body)
  return isBytes(body) ? valueOfText(textOf(body)) : body
}

/** By tag and not by instanceof: bytes from another realm (a worker's vm, Jest) are bytes too. */
export function isBytes(body: unknown): body is Bytes {
  return ArrayBuffer.isView(body) || Object.prototype.toString.call(body) === '[object ArrayBuffer]'
}

function valueOfText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // A byte order mark is looked for only now, because hardly any body begins with one.
    if (text[0] === byteOrderMark && text[1] !== byteOrderMark) return valueOfText(text.slice(1))
    // Engines quote a few characters around the fault and, some of them, its position.
    throw Failure.ofBody(text.trim() ? `is not JSON (${messageOf(error)})` : 'is empty', error)
  }
}

function textOf(bytes: Bytes): string {
  try {
    return utf8.decode(bytes)
  } catch (error) {
    throw Failure.ofBody('is not UTF-8', error)
  }
}
