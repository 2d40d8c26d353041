/** Compressed bodies. The service sends none (interface.md section 4.2), but what stands before the app may. */
import { bodyFailure } from '../delivery/failure.js'
import type { OnBytes, ReceivedBytes } from './body-reader.js'
import type { HeaderReader } from './headers.js'
import { readWebBody } from './web-body.js'

/**
 * Undoes `gzip` and `deflate`, up to `maxBytes` of content: web standards know no other. What is not encoded, or did
 * not arrive wholly, is passed on at once.
 */
export const decode = (
  encoded: ReceivedBytes,
  headerOf: HeaderReader,
  maxBytes: number,
  done: OnBytes,
): void => {
  const { body, failure: problem } = encoded
  const coding = headerOf('content-encoding')?.trim().toLowerCase()
  if (problem || !coding || coding === 'identity') {
    done(encoded)
    return
  }
  const decompressed = () => {
    // RFC 9110 section 8.4.1.3: `x-gzip` is the same.
    const format = coding === 'x-gzip' ? 'gzip' : coding
    if (format === 'gzip' || format === 'deflate') {
      return new Blob([body]).stream().pipeThrough(new DecompressionStream(format))
    }
    throw bodyFailure(`is encoded with "${coding.slice(0, 50)}", not with gzip or deflate`)
  }
  void readWebBody(decompressed, maxBytes, (content) =>
    done(content.failure ? { ...content, body } : content),
  )
}
