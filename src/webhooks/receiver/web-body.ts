/** Reads the body of a web-standard request, and everything else that is a web stream. */
import { bodyFailure, thrownFailure } from '../delivery/failure.js'
import { bodyReader, type OnBytes } from './body-reader.js'

/**
 * Reads a stream up to `maxBytes`, cancels it beyond that, and calls `done` once.
 *
 * @param open - may throw, and may give no stream: then the body is empty
 */
export async function readWebBody(
  open: () => ReadableStream<Uint8Array> | null,
  maxBytes: number,
  done: OnBytes,
): Promise<void> {
  let stream: ReadableStreamDefaultReader<Uint8Array> | undefined
  const body = bodyReader(maxBytes, (received) => {
    done(received)
    if (received.failure) stream?.cancel().catch(() => {})
  })
  try {
    stream = open()?.getReader()
    for (let part = await stream?.read(); part && !part.done; part = await stream?.read()) {
      if (!ArrayBuffer.isView(part.value)) throw bodyFailure('is no stream of bytes')
      // Any view will do, whatever its elements are.
      const { buffer, byteOffset, byteLength } = part.value
      body.add(new Uint8Array(buffer, byteOffset, byteLength))
    }
    body.finish()
  } catch (thrown) {
    body.finish(thrownFailure(thrown))
  }
}
