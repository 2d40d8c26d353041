/** Layers that turn an error status into an exception: undici's interceptors, ky, ofetch, got, fetches like axios. */
import { isStatus } from '../shared/statuses.js'
import type { HttpResponse } from './exchange.js'

/** The head of an answer, and its body as it arrives. */
export interface Head extends Pick<HttpResponse, 'status' | 'header'> {
  readonly pieces: AsyncIterable<Uint8Array>
}

/** The answer that an error, or its cause, carries: by a numeric `status` or `statusCode` of its own or of its `response`. */
export function thrownAnswer(error: unknown, layer = 0): Head | undefined {
  const { headers, body, response, cause } = Object(error)
  const status = statusOf(response) ?? statusOf(error)
  if (typeof status !== 'number' || !isStatus(status)) {
    return cause === undefined || layer === 10 ? undefined : thrownAnswer(cause, layer + 1)
  }
  const answer = Object(response ?? { headers, body })
  return {
    status,
    header: (name) => headerIn(answer.headers, name),
    pieces: bodyOf(answer, answer.data ?? answer._data),
  }
}

function statusOf(from: unknown): unknown {
  const { status, statusCode = status } = Object(from)
  return statusCode
}

function headerIn(headers: unknown, name: string): string | undefined {
  const { get } = Object(headers)
  const value: unknown = typeof get === 'function' ? get.call(headers, name) : Object(headers)[name]
  return typeof value === 'string' ? value : undefined
}

/** @param parsed - the body, if the layer has read it */
async function* bodyOf(
  answer: { text?(): unknown; readonly body?: unknown; readonly bodyUsed?: unknown },
  parsed: unknown,
): AsyncGenerator<Uint8Array> {
  const isRead = typeof answer.text !== 'function' || answer.bodyUsed === true
  const body: unknown = isRead ? (parsed ?? answer.body) : await answer.text?.()
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  if (text !== undefined) yield new TextEncoder().encode(text)
}
