/**
 * Headers as frameworks show them.
 *
 * @inline
 */
export type HeadersLike =
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | {
      /** The value of a header by its name in any case, or `null`. */
      get(name: string): string | null
    }

/** The headers of a request, from every form that frameworks use, by names in any case. */
export class RequestHeaders {
  readonly #headers: Record<string, unknown>
  readonly #rawHeaders: readonly string[]

  /**
   * @param headers - as they are shown now, perhaps changed by the app: `Headers`, or a plain object. `Headers` joins
   * duplicates with a comma and a space, so duplicates become invisible. Anything else has no headers
   * @param rawHeaders - alternating names and values as they were sent, such as Node's: they only show which headers were
   * sent twice, because Node's `headers` join them or have the first alone
   */
  constructor(headers: unknown, rawHeaders: readonly string[] = []) {
    this.#headers = Object(headers)
    this.#rawHeaders = rawHeaders
  }

  /** Every value of a header. */
  valuesOf(name: string): readonly unknown[] {
    const lowerCase = name.toLowerCase()
    const values = this.#shown(lowerCase)
    if (values.length !== 1) return values
    const sent = valuesIn(this.#rawHeaders, lowerCase)
    return sent.length > 1 ? sent : values
  }

  /** The value of a header, if it has exactly one, and that is text. */
  get(name: string): string | undefined {
    const values = this.valuesOf(name)
    return values.length === 1 && typeof values[0] === 'string' ? values[0] : undefined
  }

  #shown(lowerCaseName: string): readonly unknown[] {
    const headers = this.#headers
    const { get } = headers
    if (typeof get === 'function')
      return valuesIn([lowerCaseName, get.call(headers, lowerCaseName)], lowerCaseName)
    let values = none
    for (const name of Object.keys(headers)) {
      if (!isName(name, lowerCaseName)) continue
      const found = valuesIn([lowerCaseName, headers[name]], lowerCaseName)
      values = values === none ? found : [...values, ...found]
    }
    return values
  }
}

function isName(name: unknown, lowerCaseName: string): boolean {
  const text = String(name)
  return text.length === lowerCaseName.length && text.toLowerCase() === lowerCaseName
}

/** A list of values counts as those values. */
function valuesIn(namesAndValues: readonly unknown[], lowerCaseName: string): readonly unknown[] {
  let values = none
  for (let index = 0; index < namesAndValues.length; index += 2) {
    if (!isName(namesAndValues[index], lowerCaseName)) continue
    const value = namesAndValues[index + 1]
    if (value === undefined || value === null) continue
    values = values === none && !Array.isArray(value) ? [value] : values.concat(value)
  }
  return values
}

/** Most headers that are asked for were not sent: a new list for each would cost a twentieth of a callback. */
const none: readonly unknown[] = []
