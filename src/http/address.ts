/** The parts of a request's URL. */

export interface Address {
  readonly origin: string
  /** As it stands in the request. */
  readonly path: string
  /** Without the query: safe to log. */
  readonly shown: string
}

let last: { readonly url: string; readonly address: Address } | undefined

/** Remembers one, because most calls go to the address of the last. */
export function addressOf(url: string): Address {
  if (last?.url !== url) {
    const { origin, pathname, search } = new URL(url)
    last = { url, address: { origin, path: pathname + search, shown: origin + pathname } }
  }
  return last.address
}
