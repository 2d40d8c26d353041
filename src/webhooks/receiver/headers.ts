/** One way to read a header, whatever holds it. */

/** Headers as frameworks hand them over: a plain object with names in any case, or web `Headers`. */
export type CallbackHeaders =
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | {
      /** The value of a header by its name in any case, or `null`. */
      get(name: string): string | null
    }

/** Reads a header by its name in lower case: its value, if it was sent exactly once and is text. */
export type HeaderReader = (lowerCaseName: string) => string | undefined

/**
 * Reads `Headers`, a plain object, or a list of names and values in turn, such as Node's `rawHeaders`: the headers as
 * they were sent. `Headers` joins what was sent twice with a comma and a space, which no longer shows as two.
 */
export const headerReader = (headers: unknown): HeaderReader => {
  const { get } = Object(headers)
  if (typeof get === 'function') return (name) => textOrNothing(get.call(headers, name))
  const namesAndValues = Array.isArray(headers) ? headers : Object.entries(Object(headers)).flat()
  return (lowerCaseName) => {
    let value: unknown
    for (let index = 0; index < namesAndValues.length; index += 2) {
      const name: string = namesAndValues[index]
      const sent = namesAndValues[index + 1]
      if (name.length !== lowerCaseName.length || name.toLowerCase() !== lowerCaseName) continue
      if (sent === undefined || sent === null) continue
      if (value !== undefined) return undefined
      value = sent
    }
    return textOrNothing(value)
  }
}

const textOrNothing = (value: unknown) => (typeof value === 'string' ? value : undefined)
