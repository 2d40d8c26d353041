/** The headers of a request, from every form that frameworks use, by names in any case. */
export class RequestHeaders {
  readonly #valuesOf: (lowerCaseName: string) => readonly unknown[]

  /**
   * @param headers - `Headers`, a plain object, or a list of names and values in turn, such as Node's `rawHeaders`: the
   * headers as they were sent. `Headers` joins duplicates with a comma and a space, so duplicates become invisible.
   * Anything else has no headers.
   */
  constructor(headers: unknown) {
    const { get } = Object(headers)
    if (typeof get === 'function') {
      this.#valuesOf = (name) => [get.call(headers, name)]
    } else {
      const list: unknown[] = Array.isArray(headers) ? headers : Object.entries(Object(headers)).flat()
      this.#valuesOf = (name) => valuesIn(list, name)
    }
  }

  /** Every value that a header was sent with. */
  valuesOf(name: string): readonly unknown[] {
    return this.#valuesOf(name.toLowerCase()).filter((value) => value !== undefined && value !== null)
  }

  /** The value of a header, if it was sent exactly once and is text. */
  get(name: string): string | undefined {
    const [value, ...others] = this.valuesOf(name)
    return typeof value === 'string' && others.length === 0 ? value : undefined
  }
}

function valuesIn(namesAndValues: readonly unknown[], lowerCaseName: string): unknown[] {
  const values: unknown[] = []
  for (let index = 0; index < namesAndValues.length; index += 2) {
    const name = String(namesAndValues[index])
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) {
      values.push(namesAndValues[index + 1])
    }
  }
  return values
}
