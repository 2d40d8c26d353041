/** Who is let in: callbacks have no signature, only the subscriber's own secrets (interface.md section 5, rule 6). */
import type { HeaderReader } from './headers.js'

/** Accepted values by the name of the header that must carry one of them. */
export type Secrets = Readonly<Record<string, string | readonly string[]>>

/**
 * Makes a check whose time tells nothing of what the secrets say: every header is compared with every accepted value, and
 * always over the length of what was presented.
 */
export const authenticator = (secrets: Secrets): ((headerOf: HeaderReader) => boolean) => {
  const headers = Object.entries(secrets).map(([name, accepted]) => ({
    name: name.toLowerCase(),
    accepted: [accepted].flat(),
  }))
  return (headerOf) => {
    let isAuthentic = true
    for (const { name, accepted } of headers) {
      // No accepted value is empty, so that a missing header matches none.
      const presented = headerOf(name) ?? ''
      let isAccepted = false
      for (const value of accepted) isAccepted = areEqual(value, presented) || isAccepted
      isAuthentic = isAccepted && isAuthentic
    }
    return isAuthentic
  }
}

/**
 * Looks at every character, whichever differ. Not `timingSafeEqual` of `node:crypto`: loading that takes nearly as
 * long as loading the rest of this door, and not every runtime has it.
 */
const areEqual = (accepted: string, presented: string): boolean => {
  let difference = accepted.length ^ presented.length
  for (let index = 0; index < presented.length; index += 1) {
    // A shorter value begins anew: looking beyond its end would take another time.
    difference |= accepted.charCodeAt(index % accepted.length) ^ presented.charCodeAt(index)
  }
  return difference === 0
}
