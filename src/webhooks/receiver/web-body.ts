/** Reads web streams: the body of a web-standard request, and what a decompression gives. */
import { type BodyRead, bodyTimeoutMs, failedBody, lateBody, unreadableBody } from './body-read.js'
import { CollectedBytes } from './collected-bytes.js'
import { isOverWithin } from './time-limit.js'

/**
 * Reads a stream up to `maxBytes`, for a limited time, and cancels it beyond either.
 *
 * @throws if something else is reading the stream
 */
export async function readWebStream(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<BodyRead<Uint8Array>> {
  const collected = new CollectedBytes(maxBytes)
  if (stream === null) return { kind: 'body', body: collected.bytes }
  const reader = stream.getReader()
  const reading = readInto(collected, reader)
  const isInTime = await isOverWithin(reading, bodyTimeoutMs)
  const read = isInTime ? await reading : lateBody(collected.bytes)
  if (read.kind !== 'body') reader.cancel().catch(() => {})
  return read
}

/** Never rejects. */
async function readInto(
  collected: CollectedBytes,
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<BodyRead<Uint8Array>> {
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return { kind: 'body', body: collected.bytes }
      if (!ArrayBuffer.isView(value)) return unreadableBody('is no stream of bytes', collected.bytes)
      // Any view on bytes will do, whatever its elements are.
      const isFitting = collected.add(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))
      if (!isFitting) return { kind: 'too-large' }
    }
  } catch (thrown) {
    return failedBody(thrown, collected.bytes)
  }
}
