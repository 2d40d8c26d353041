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

  /** @param headers - as they are now, perhaps changed by the app: `Headers`, or a plain object. Anything else has none */
  constructor(headers: unknown) {
    this.#headers = Object(headers)
  }

  /** What was sent as a header: text, a list, or nothing. What was sent twice is mostly joined by a comma. */
  sent(name: string): unknown {
    const headers = this.#headers
    const lowerCase = name.toLowerCase()
    if (typeof headers.get === 'function') return headers.get(lowerCase) ?? undefined
    if (Object.hasOwn(headers, lowerCase)) return headers[lowerCase]
    const written = Object.keys(headers).find((each) => each.toLowerCase() === lowerCase)
    return written && headers[written]
  }

  /** The value of a header, if it has exactly one, and that is text. */
  get(name: string): string | undefined {
    const sent = this.sent(name)
    const value: unknown = Array.isArray(sent) && sent.length === 1 ? sent[0] : sent
    return typeof value === 'string' ? value : undefined
  }
}
