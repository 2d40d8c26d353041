/** Reads a body that arrives in pieces: up to a size, for a limited time, and says once what became of it. */
import { bodyFailure, type Failure } from '../delivery/failure.js'
import { startAckTimer } from './ack-timer.js'

/** A callback's body, or what there is of it and why it cannot be used. */
export interface ReceivedBody {
  readonly body?: unknown
  readonly failure?: Failure | undefined
}

/** What was read of a body. */
export interface ReceivedBytes extends ReceivedBody {
  readonly body: Uint8Array
}

export type OnBytes = (received: ReceivedBytes) => void

/** The failure of a body that is larger than allowed: the only one without issues. It is refused, and nobody reads why. */
export const tooLarge: Failure = { issues: [] }

/** Why there is no body left to read, as the rest of a sentence about it. */
export const readBefore = 'was read before'

/** How long a body may take to arrive, in milliseconds: a sender that stops half way holds nothing for ever. */
const bodyTimeoutMs = 10_000

const nothing = new Uint8Array()

/** What whoever brings the pieces calls. */
export interface BodyReader {
  add(piece: Uint8Array): void
  /** The body is over, or will not be. Counts the first time. */
  finish(failure?: Failure): void
}

/**
 * Calls `done` once. Most bodies are one piece, which is not copied.
 *
 * @param declaredBytes - the length of the body, where it is certain: it is over then, whether or not somebody says so
 * @param onWait - called if the body does not arrive at once
 */
export const bodyReader = (
  maxBytes: number,
  done: OnBytes,
  declaredBytes?: number,
  onWait?: () => void,
): BodyReader => {
  let bytes: Uint8Array = nothing
  let size = 0
  let isDone = false

  const finish = (failure?: Failure): void => {
    if (isDone) return
    isDone = true
    stopWaiting()
    // A view costs as much as checking the secrets.
    done({ body: size < bytes.byteLength ? bytes.subarray(0, size) : bytes, failure })
  }

  const add = (piece: Uint8Array): void => {
    const end = size + piece.byteLength
    if (end > maxBytes) {
      finish(tooLarge)
      return
    }
    if (size === 0) {
      bytes = piece
    } else {
      // One buffer that doubles: a sender of single bytes cannot make them cost more than that.
      if (end > bytes.byteLength) {
        const grown = new Uint8Array(Math.min(end * 2, maxBytes))
        grown.set(bytes)
        bytes = grown
      }
      bytes.set(piece, size)
    }
    size = end
    if (size === declaredBytes) finish()
  }

  const stopWaiting = startAckTimer(
    bodyTimeoutMs,
    () => finish(bodyFailure(`did not arrive within ${bodyTimeoutMs} ms`)),
    onWait,
  )
  return { add, finish }
}
