/** The JSON value in a callback's body, whatever form the web framework hands it over in. */

import { messageOf } from '../text.js'
import { failure, type Outcome, success } from './outcome.js'

export type Bytes = NonNullable<Parameters<(typeof utf8)['decode']>[0]>

const byteOrderMark = 0xfeff
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads text, bytes (an `ArrayBuffer` or any view on one) or a value that was parsed before. One byte order
 * mark at the start is ignored.
 */
export function valueOfBody(body: unknown): Outcome<unknown> {
  if (typeof body === 'string')
    return valueOfText(body.charCodeAt(0) === byteOrderMark ? body.slice(1) : body)
  if (isBytes(body)) return valueOfBytes(body)
  return success(body)
}

function valueOfText(text: string): Outcome<unknown> {
  try {
    return success(JSON.parse(text))
  } catch (error) {
    if (text.trim() === '') return failure('the body is empty')
    // Engines quote a few characters around the fault and, some of them, its position.
    return failure(`the body is not JSON (${messageOf(error)})`, error)
  }
}

function valueOfBytes(bytes: Bytes): Outcome<unknown> {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch (error) {
    return failure('the body is not UTF-8', error)
  }
  return valueOfText(text)
}

/** By tag and not by instanceof: bytes from another realm (a worker's vm, Jest) are bytes too. */
export function isBytes(body: unknown): body is Bytes {
  return ArrayBuffer.isView(body) || Object.prototype.toString.call(body) === '[object ArrayBuffer]'
}
