/** Compressed bodies. The service sends none (interface.md section 4.2), but what stands before the app may. */
import { excerpt, messageOf } from '../../text.js'
import { isWhole, type ReadBody, readStream, unusable } from './read-body.js'

/** Whether a `Content-Encoding` header says that the body is encoded. */
export function isEncoded(contentEncoding: string | undefined): contentEncoding is string {
  return contentEncoding !== undefined && !/^(identity)?$/i.test(contentEncoding.trim())
}

/** Undoes `gzip` and `deflate`, up to `maxBytes` of content: web standards know no other. Never rejects. */
export async function decode(
  encoded: Uint8Array,
  contentEncoding: string,
  maxBytes: number,
): Promise<ReadBody> {
  // RFC 9110 section 8.4.1.3: `x-gzip` is the same.
  const format = contentEncoding
    .trim()
    .toLowerCase()
    .replace(/^x-gzip$/, 'gzip')
  if (format !== 'gzip' && format !== 'deflate') {
    return unusable(`the body is encoded with "${excerpt(format, 50)}", not with gzip or deflate`, encoded)
  }
  try {
    const content = new Blob([encoded]).stream().pipeThrough(new DecompressionStream(format))
    const read = await readStream(content, maxBytes)
    return isWhole(read) || read === 'too large' ? read : { ...read, bytes: encoded }
  } catch (cause) {
    return unusable(`the body cannot be decompressed (${messageOf(cause)})`, encoded, cause)
  }
}
