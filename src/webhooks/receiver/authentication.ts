/** Who is let in: callbacks have no signature, only the subscriber's own secrets (docs/service.md, Authentication). */
import type { DeliveryReceiverOptions } from './receiver-options.js'
import type { RequestHeaders } from './request-headers.js'

type Secrets = NonNullable<DeliveryReceiverOptions['secrets']>

/** Why a request is not let in: the name of the header that decided, and a reason for people, without the value. */
export interface SecretProblem {
  readonly header: string
  readonly reason: string
}

/** Says what is wrong with the secrets of a request, or nothing if it is let in. */
export type Authenticator = (headers: RequestHeaders) => SecretProblem | undefined

/**
 * Makes a check whose time tells nothing of what the secrets say: every header is compared with every accepted value,
 * and always over the length of what was presented.
 */
export function authenticator(secrets: Secrets): Authenticator {
  const wanted = Object.entries(secrets).map(([name, accepted]) => ({ name, accepted: [accepted].flat() }))
  return (headers) => {
    let refused: string | undefined
    for (const { name, accepted } of wanted) {
      // No accepted value is empty, so that a missing header matches none.
      const presented = headers.get(name) ?? ''
      let isAccepted = false
      for (const value of accepted) isAccepted = areEqual(value, presented) || isAccepted
      if (!isAccepted) refused ??= name
    }
    return refused === undefined ? undefined : { header: refused, reason: reasonFor(headers, refused) }
  }
}

function reasonFor(headers: RequestHeaders, name: string): string {
  const subject = `the header "${name}"`
  switch (headers.read(name).kind) {
    case 'missing':
      return `${subject} is missing`
    case 'repeated':
      return `${subject} is there twice`
    case 'no-text':
      return `${subject} is not text`
    case 'text':
      return `${subject} is wrong`
  }
}

/**
 * Looks at every character, whichever differ. Not `timingSafeEqual` of `node:crypto`: loading that takes nearly as
 * long as loading the rest of this door, and not every runtime has it.
 */
function areEqual(accepted: string, presented: string): boolean {
  let difference = accepted.length ^ presented.length
  for (let index = 0; index < presented.length; index += 1) {
    // A shorter accepted value begins anew: reading beyond its end would take another time.
    difference |= accepted.charCodeAt(index % accepted.length) ^ presented.charCodeAt(index)
  }
  return difference === 0
}
