/** Where a request goes, parsed once: in the parts that undici, fetch, errors and logs ask for. */

export interface Address {
  /** The whole address, for fetch. */
  readonly url: string
  readonly origin: string
  /** Path and query, as they stand in the request. */
  readonly path: string
  /** Host and port, for messages. */
  readonly host: string
  /** The address without its query, in which a secret may stand: for errors and logs. */
  readonly shown: string
}

/**
 * The address of a path under a base address.
 *
 * @param base - query, fragment and slashes at the end are left out
 * @param path - begins with a slash; may have a query
 */
export function addressBelow(base: URL, path: string): Address {
  const { host, origin } = base
  const wholePath = base.pathname.replace(/\/+$/, '') + path
  const [pathWithoutQuery] = wholePath.split('?', 1)
  return {
    url: origin + wholePath,
    origin,
    path: wholePath,
    host,
    shown: `${origin}${pathWithoutQuery}`,
  }
}
