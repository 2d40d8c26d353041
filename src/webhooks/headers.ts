/** The headers of a request, from every form that frameworks use, by names in any case. */
export class RequestHeaders {
  readonly #valuesOf: (lowerCaseName: string) => readonly unknown[]

  /**
   * @param headers - `Headers`, a plain object, or a list of alternating names and values, such as Node's `rawHeaders`: the
   * headers as they were sent. `Headers` joins duplicates with a comma and a space, so duplicates become invisible.
   * Anything else has no headers.
   */
  constructor(headers: unknown) {
    const { get } = Object(headers)
    if (typeof get === 'function') {
      this.#valuesOf = (name) => valuesIn([name, get.call(headers, name)], name)
    } else {
      const list: unknown[] = Array.isArray(headers) ? headers : Object.entries(Object(headers)).flat()
      this.#valuesOf = (name) => valuesIn(list, name)
    }
  }

  /** Every value that a header was sent with. */
  valuesOf(name: string): readonly unknown[] {
    return this.#valuesOf(name.toLowerCase())
  }

  /** The value of a header, if it was sent exactly once and is text. */
  get(name: string): string | undefined {
    const values = this.valuesOf(name)
    return values.length === 1 && typeof values[0] === 'string' ? values[0] : undefined
  }
}

function valuesIn(namesAndValues: readonly unknown[], lowerCaseName: string): readonly unknown[] {
  let values = none
  for (let index = 0; index < namesAndValues.length; index += 2) {
    const name = String(namesAndValues[index])
    if (name.length !== lowerCaseName.length || name.toLowerCase() !== lowerCaseName) continue
    const value = namesAndValues[index + 1]
    if (value === undefined || value === null) continue
    if (values === none) values = [value]
    else values.push(value)
  }
  return values
}

/** Most headers that are asked for were not sent: a new list for each would cost a twentieth of a callback. */
const none: unknown[] = []
