/** Reads the headers of a request from every form that frameworks use: `Headers`, or a plain object. Anything else has none. */

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

/** What was sent as a header: text, a list, or nothing. What was sent twice is usually joined by a comma. */
export function sentHeader(headers: unknown, name: string): unknown {
  const lowerCase = name.toLowerCase()
  const read: Readonly<Record<string, unknown>> = Object(headers)
  if (typeof read.get === 'function') return read.get(lowerCase) ?? undefined
  if (Object.hasOwn(read, lowerCase)) return read[lowerCase]
  const written = Object.keys(read).find((each) => each.toLowerCase() === lowerCase)
  return written && read[written]
}

/** The value of a header, by its name in any case, if the header was sent once. */
export function headerOf(headers: unknown, name: string): string | undefined {
  const sent = sentHeader(headers, name)
  const value: unknown = Array.isArray(sent) && sent.length === 1 ? sent[0] : sent
  return typeof value === 'string' ? value : undefined
}
