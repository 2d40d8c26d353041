/** Reads a body that is a stream of the web's standards, up to a limit and for a limited time. */
import { BoundedBytes } from '../../shared/bounded-bytes.js'
import { messageOf } from '../../shared/text.js'
import { settlesWithin } from '../../shared/waits.js'
import { bodyTimeoutMs, bytesOf, invalidDelivery, type ReadBody, routeAdvice } from '../body.js'
import type { ReceiverCore } from '../core.js'

/** The parts of a `Request` that are used here. */
export interface WebBody {
  readonly bodyUsed: boolean
  readonly body: { readonly locked: boolean; getReader(): WebReader } | null
  text(): Promise<string>
}

interface WebReader {
  read(): Promise<{ readonly done: boolean; readonly value?: unknown }>
  cancel(): Promise<void>
}

export async function readWebBody(request: WebBody, core: ReceiverCore): Promise<ReadBody> {
  const { bodyUsed, body } = request
  if (bodyUsed || body?.locked) {
    core.warnOfParser()
    throw invalidDelivery(undefined, `was read before the receiver: ${routeAdvice}`)
  }
  // Not every polyfill has streams.
  if (!body?.getReader) return { body: await request.text() }
  const reader = body.getReader()
  const read = new BoundedBytes(core.maxBodyBytes)
  const partial = (problem: string, cause?: unknown) => ({
    body: read.bytes,
    failure: invalidDelivery(read.bytes, problem, cause),
  })
  try {
    const reading = read.addAll(piecesOf(reader))
    if (!(await settlesWithin(bodyTimeoutMs, reading))) {
      return partial(`did not arrive within ${bodyTimeoutMs} ms`)
    }
    return (await reading) ? { body: read.bytes } : undefined
  } catch (thrown) {
    return partial(`cannot be read (${messageOf(thrown)})`, thrown)
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** Not the iterator of the stream, which not every runtime has. */
async function* piecesOf(reader: WebReader): AsyncGenerator<Uint8Array> {
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    if (!ArrayBuffer.isView(value)) throw new TypeError('it is no stream of bytes')
    yield bytesOf(value)
  }
}
