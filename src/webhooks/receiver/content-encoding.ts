/** Compressed bodies. The service sends none (docs/service.md, Delivery), but what stands before the app may. */
import { type BodyRead, failedBody, unreadableBody } from './body-read.js'
import type { RequestHeaders } from './request-headers.js'
import { readWebStream } from './web-body.js'

/**
 * Undoes the coding that the header `content-encoding` names, up to `maxBytes` of content. A body without one, and what
 * did not arrive wholly, is passed on as it is.
 */
export function decoded(
  read: BodyRead<Uint8Array>,
  headers: RequestHeaders,
  maxBytes: number,
): BodyRead | Promise<BodyRead> {
  const coding = headers.get('content-encoding')?.trim().toLowerCase()
  const isCoded = coding !== undefined && coding !== '' && coding !== 'identity'
  return isCoded && read.kind === 'body' ? decode(read.body, coding, maxBytes) : read
}

/**
 * Undoes `gzip` and `deflate`, which every runtime can undo, up to `maxBytes` of content. A body that cannot be decoded
 * is passed on as it came.
 */
async function decode(encoded: Uint8Array, coding: string, maxBytes: number): Promise<BodyRead> {
  const format = formatOf(coding)
  if (format === undefined) {
    return unreadableBody(`is encoded with "${coding.slice(0, 50)}", not with gzip or deflate`, encoded)
  }
  try {
    // Only the type is narrowed: a body never stands in shared memory.
    const content = new Blob([encoded as Uint8Array<ArrayBuffer>]).stream()
    const read = await readWebStream(content.pipeThrough(new DecompressionStream(format)), maxBytes)
    return read.kind === 'unreadable' ? { ...read, body: encoded } : read
  } catch (thrown) {
    return failedBody(thrown, encoded)
  }
}

function formatOf(coding: string): 'gzip' | 'deflate' | undefined {
  // `x-gzip` means `gzip` (RFC 9110 section 8.4.1.3).
  if (coding === 'gzip' || coding === 'x-gzip') return 'gzip'
  return coding === 'deflate' ? 'deflate' : undefined
}
