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
    const [headers, raw] = [this.#headers, this.#rawHeaders]
    const { get } = headers
    const values =
      typeof get === 'function'
        ? valuesIn([lowerCase], lowerCase, () => get.call(headers, lowerCase))
        : valuesIn(Object.keys(headers), lowerCase, (shown) => headers[shown])
    if (values.length !== 1) return values
    const sent = valuesIn(raw, lowerCase, (_, index) => raw[index + 1], 2)
    return sent.length > 1 ? sent : values
  }

  /** The value of a header, if it has exactly one, and that is text. */
  get(name: string): string | undefined {
    const values = this.valuesOf(name)
    return values.length === 1 && typeof values[0] === 'string' ? values[0] : undefined
  }
}

/** The values of a header, which stands at every `step`th of the names. A list of values counts as those values. */
function valuesIn(
  names: readonly string[],
  lowerCaseName: string,
  valueAt: (name: string, index: number) => unknown,
  step = 1,
): readonly unknown[] {
  let values = none
  for (let index = 0; index < names.length; index += step) {
    const name = String(names[index])
    if (name.length !== lowerCaseName.length || name.toLowerCase() !== lowerCaseName) continue
    const value = valueAt(name, index)
    if (value === undefined || value === null) continue
    values = values === none && !Array.isArray(value) ? [value] : values.concat(value)
  }
  return values
}

/** Most headers that are asked for were not sent: a new list for each would cost a twentieth of a callback. */
const none: readonly unknown[] = []
