/** Who is let in: callbacks have no signature, only the subscriber's own secrets (interface.md section 5, rule 6). */
import type { HeaderReader } from './headers.js'

/** Accepted values by the name of the header that must carry one of them. */
export type Secrets = Readonly<Record<string, string | readonly string[]>>

/**
 * Makes a check that takes the same time whichever header is wrong, and wherever in it: every header is
 * compared with every accepted value, and always over the length of the longest.
 */
export function authenticator(secrets: Secrets): (headerOf: HeaderReader) => boolean {
  const values = Object.values(secrets).flat()
  const size = Math.max(...values.map(({ length }) => length)) + 1
  const headers = Object.entries(secrets).map(([name, accepted]) => ({
    name: name.toLowerCase(),
    accepted: [accepted].flat().map((value) => written(value, new Uint32Array(size))),
  }))
  // One for all requests, because nothing else runs between writing and comparing.
  const presented = new Uint32Array(size)

  return (headerOf) => {
    let isAuthentic = true
    for (const { name, accepted } of headers) {
      // No accepted value is empty, so that a missing header matches none.
      written(headerOf(name) ?? '', presented)
      let isAccepted = false
      for (const value of accepted) isAccepted = areEqual(value, presented) || isAccepted
      isAuthentic = isAccepted && isAuthentic
    }
    return isAuthentic
  }
}

/**
 * Looks at every number, whichever differ. Not `timingSafeEqual` of `node:crypto`: loading that takes nearly as
 * long as loading the rest of this door, and not every runtime has it.
 */
function areEqual(accepted: Uint32Array, presented: Uint32Array): boolean {
  let difference = 0
  for (let index = 0; index < accepted.length; index += 1) {
    difference |= (accepted[index] ?? 0) ^ (presented[index] ?? 0)
  }
  return difference === 0
}

/** Writes the length of a text and its characters, as many as there is room for, and zeros after them. */
function written(text: string, numbers: Uint32Array): Uint32Array {
  numbers[0] = text.length
  // Beyond the end of the text there is NaN, which is written as zero.
  for (let index = 1; index < numbers.length; index += 1) numbers[index] = text.charCodeAt(index - 1)
  return numbers
}
