/** The JSON value in a callback's body, whatever form the web framework hands it over in. */

import { messageOf } from '../../shared/excerpt.js'
import { bodyFailure } from './failure.js'

export type Bytes = NonNullable<Parameters<(typeof utf8)['decode']>[0]>

const byteOrderMark = '\uFEFF'
// `ignoreBOM` keeps the mark: it is ignored where text is read.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Reads text, bytes (an `ArrayBuffer` or any view on one) or a value that was parsed before. One byte order
 * mark at the start is ignored.
 *
 * @throws Failure if there is no JSON value in it.
 */
export const valueOfBody = (body: unknown): unknown =>
  typeof body === 'string' ? valueOfText(body) : isBytes(body) ? valueOfText(textOf(body)) : body

const valueOfText = (text: string, mayHaveMark = true): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    // Looked for only now: hardly any body begins with one.
    if (mayHaveMark && text[0] === byteOrderMark) return valueOfText(text.slice(1), false)
    // Engines quote a few characters around the fault and, some of them, its position.
    throw bodyFailure(text.trim() ? `is not JSON (${messageOf(error)})` : 'is empty', error)
  }
}

const textOf = (bytes: Bytes): string => {
  try {
    return utf8.decode(bytes)
  } catch (error) {
    throw bodyFailure('is not UTF-8', error)
  }
}

/** By tag and not by instanceof: bytes from another realm (a worker's vm, Jest) are bytes too. */
export const isBytes = (body: unknown): body is Bytes =>
  ArrayBuffer.isView(body) || Object.prototype.toString.call(body) === '[object ArrayBuffer]'
