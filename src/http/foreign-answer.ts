/** Answers of layers that are not ours: a `Response` or something like one, also inside of what a layer throws for a status. */
import { isStatus } from '../shared/statuses.js'
import type { HttpResponse } from './exchange.js'

/** The head of an answer, and its body as it arrives. */
export interface Head extends Pick<HttpResponse, 'status' | 'header'> {
  readonly pieces: AsyncIterable<Uint8Array>
}

/** What `fetch` or something like it returned. */
export function foreignAnswer(answer: unknown): Head {
  const { headers, status } = Object(answer)
  return { status, header: (name) => headerIn(headers, name), pieces: piecesOf(() => unread(answer)) }
}

/** The answer that an error or its cause carries, by a numeric status: of undici's interceptors, ky, ofetch, got, axios. */
export function thrownAnswer(error: unknown, layer = 0): Head | undefined {
  const { cause, response } = Object(error)
  const status = statusOf(response) ?? statusOf(error)
  if (typeof status !== 'number' || !isStatus(status)) {
    return cause === undefined || layer === 10 ? undefined : thrownAnswer(cause, layer + 1)
  }
  const { headers } = Object(response ?? error)
  return {
    status,
    header: (name) => headerIn(headers, name),
    pieces: piecesOf(() => thrownBody(response, error)),
  }
}

function statusOf(from: unknown): unknown {
  const { status, statusCode = status } = Object(from)
  return statusCode
}

/** A header of `Headers`, or of an object, a `Map` or pairs, as adapters and mocks have them. */
function headerIn(headers: unknown, name: string): string | undefined {
  try {
    const { get } = Object(headers)
    const value: unknown =
      typeof get === 'function' ? get.call(headers, name) : new Headers(Object(headers)).get(name)
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

/** Where layers leave a body that they have read: superagent, wretch, Azure's pipeline, got, axios, ky, ofetch. */
const placesOfBody = ['text', 'bodyAsText', 'body', 'data', '_data']

function thrownBody(response: unknown, error: unknown): unknown {
  // Without a response, `data` is of the layer, such as the count of undici's retries.
  const places = response === undefined ? ['text', 'body'] : placesOfBody
  for (const from of [response, error]) {
    const { body, bodyUsed, text } = Object(from)
    if (bodyUsed !== true && (typeof text === 'function' || isAsyncIterable(body))) return unread(from)
    const isRead = (value: unknown) => value && !isAsyncIterable(value) && typeof value !== 'function'
    const place = places.find((name) => isRead(Object(from)[name]))
    if (place !== undefined) return Object(from)[place]
  }
  return undefined
}

/** The body that nothing has read: as a stream if possible, which can be limited. Mocks often have one method only. */
function unread(answer: unknown): unknown {
  const { arrayBuffer, body, bodyUsed, json, text } = Object(answer)
  if (bodyUsed === true) throw new TypeError('the Response was read before: a mock makes one for each call')
  if (body === null || isAsyncIterable(body)) return body
  const read = [text, json, arrayBuffer].find((method) => typeof method === 'function')
  if (read === undefined) throw new TypeError('the Response has no method text')
  return read.call(answer)
}

async function* piecesOf(bodyOf: () => unknown): AsyncGenerator<Uint8Array> {
  const body = await bodyOf()
  if (isAsyncIterable(body)) for await (const piece of body) yield bytesOf(piece)
  else if (body !== undefined && body !== null) yield bytesOf(body)
}

/** Bytes and text as they are, anything else as JSON. */
function bytesOf(content: unknown): Uint8Array {
  if (ArrayBuffer.isView(content))
    return new Uint8Array(content.buffer, content.byteOffset, content.byteLength)
  if (content instanceof ArrayBuffer) return new Uint8Array(content)
  return new TextEncoder().encode(typeof content === 'string' ? content : JSON.stringify(content))
}

function isAsyncIterable(body: unknown): body is AsyncIterable<unknown> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body
}
