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
  readonly #shown: readonly unknown[]

  /**
   * @param headers - as they are shown now, perhaps changed by the app: `Headers`, or a plain object. `Headers` joins
   * duplicates with a comma and a space, so duplicates become invisible. Anything else has no headers
   * @param rawHeaders - alternating names and values as they were sent, such as Node's: they only show which headers were
   * sent twice, because Node's `headers` join them or have the first alone
   */
  constructor(headers: unknown, rawHeaders: readonly string[] = []) {
    this.#headers = Object(headers)
    this.#shown = Object.entries(this.#headers).flat()
    this.#rawHeaders = rawHeaders
  }

  /** Every value of a header. */
  valuesOf(name: string): readonly unknown[] {
    const lowerCase = name.toLowerCase()
    const { get } = this.#headers
    const isWeb = typeof get === 'function'
    const values = valuesIn(isWeb ? [lowerCase, get.call(this.#headers, lowerCase)] : this.#shown, lowerCase)
    if (values.length !== 1) return values
    const sent = valuesIn(this.#rawHeaders, lowerCase)
    return sent.length > 1 ? sent : values
  }

  /** The value of a header, if it has exactly one, and that is text. */
  get(name: string): string | undefined {
    const values = this.valuesOf(name)
    return values.length === 1 && typeof values[0] === 'string' ? values[0] : undefined
  }
}

/** The values of a header in a list of names and values. A list of values counts as those values. */
function valuesIn(namesAndValues: readonly unknown[], lowerCaseName: string): readonly unknown[] {
  let values = none
  for (let index = 0; index < namesAndValues.length; index += 2) {
    const name = String(namesAndValues[index])
    const value = namesAndValues[index + 1]
    if (name.length !== lowerCaseName.length || value === undefined || value === null) continue
    if (name.toLowerCase() === lowerCaseName)
      values = values === none && !Array.isArray(value) ? [value] : values.concat(value)
  }
  return values
}

/** Most headers that are asked for were not sent: a new list for each would cost a twentieth of a callback. */
const none: readonly unknown[] = []
