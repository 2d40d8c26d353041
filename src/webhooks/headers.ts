/** Reads headers from every form that frameworks use. */

/** The value of a header, or why there is none. */
type HeaderRead =
  | { readonly kind: 'text'; readonly value: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'repeated' }
  | { readonly kind: 'no-text' }

/** The headers of a request, by names in any case. */
export class RequestHeaders {
  readonly #read: (lowerCaseName: string) => HeaderRead

  /**
   * @param headers - `Headers`, a plain object, or a list of names and values in turn, such as Node's `rawHeaders`: the
   * headers as they were sent. `Headers` joins duplicates with a comma and a space, so duplicates become invisible.
   * Anything else has no headers.
   */
  constructor(headers: unknown) {
    const { get } = Object(headers)
    if (typeof get === 'function') {
      this.#read = (name) => readOf(get.call(headers, name) ?? undefined)
    } else {
      const namesAndValues: unknown[] = Array.isArray(headers)
        ? headers
        : Object.entries(Object(headers)).flat()
      this.#read = (name) => findIn(namesAndValues, name)
    }
  }

  /** The value of a header, if it was sent exactly once and is text. */
  get(name: string): string | undefined {
    const read = this.read(name)
    return read.kind === 'text' ? read.value : undefined
  }

  /** The value of a header, or why there is none. */
  read(name: string): HeaderRead {
    return this.#read(name.toLowerCase())
  }
}

function findIn(namesAndValues: readonly unknown[], lowerCaseName: string): HeaderRead {
  let value: unknown
  for (let index = 0; index < namesAndValues.length; index += 2) {
    const name = String(namesAndValues[index])
    if (name.length !== lowerCaseName.length || name.toLowerCase() !== lowerCaseName) continue
    const sent = namesAndValues[index + 1]
    if (sent === undefined || sent === null) continue
    if (value !== undefined) return { kind: 'repeated' }
    value = sent
  }
  return readOf(value)
}

function readOf(value: unknown): HeaderRead {
  if (typeof value === 'string') return { kind: 'text', value }
  return { kind: value === undefined ? 'missing' : 'no-text' }
}
