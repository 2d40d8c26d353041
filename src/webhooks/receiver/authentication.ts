/** Who is let in: callbacks have no signature, only the subscriber's own secrets (interface.md section 5, rule 6). */
import type { HeaderReader } from './headers.js'

/** Accepted values by the name of the header that must carry one of them. */
export type Secrets = Readonly<Record<string, string | readonly string[]>>

/**
 * Makes a check that takes the same time whichever header is wrong, and wherever in it: every header is
 * compared with every accepted value, and always over the length of the longest.
 */
export function authenticator(secrets: Secrets): (headerOf: HeaderReader) => boolean {
  const headers = Object.entries(secrets).map(([name, accepted]) => ({
    name: name.toLowerCase(),
    values: [accepted].flat(),
  }))
  const longest = Math.max(...headers.flatMap(({ values }) => values.map((value) => value.length)))
  const expected = headers.map(({ name, values }) => ({
    name,
    values: values.map((value) => ({
      length: value.length,
      characters: padded(value, new Uint16Array(longest)),
    })),
  }))
  // One for all requests, because nothing else runs between writing and comparing.
  const presented = new Uint16Array(longest)

  return (headerOf) => {
    let isAuthentic = true
    for (const { name, values } of expected) {
      // No accepted value is empty, so that a missing header matches none.
      const sent = headerOf(name) ?? ''
      padded(sent, presented)
      let isAccepted = false
      for (const { length, characters } of values) {
        const isEqual = areEqual(characters, presented)
        // What is longer than all of them, or ends with the padding, only differs in length.
        isAccepted = (isEqual && sent.length === length) || isAccepted
      }
      isAuthentic = isAccepted && isAuthentic
    }
    return isAuthentic
  }
}

/**
 * Looks at every character, whichever differ. Not `timingSafeEqual` of `node:crypto`: loading that takes nearly as
 * long as loading the rest of this door, and not every runtime has it.
 */
function areEqual(accepted: Uint16Array, presented: Uint16Array): boolean {
  let difference = 0
  for (let index = 0; index < accepted.length; index += 1) {
    difference |= (accepted[index] ?? 0) ^ (presented[index] ?? 0)
  }
  return difference === 0
}

/** Writes the characters of a text, as many as there is room for, and zeros after them. */
function padded(text: string, characters: Uint16Array): Uint16Array {
  for (let index = 0; index < characters.length; index += 1) {
    characters[index] = index < text.length ? text.charCodeAt(index) : 0
  }
  return characters
}
