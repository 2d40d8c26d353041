/** Whose requests the page server answers: a page of another origin can neither read nor post. */
import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** Why a request is not answered. */
export class PageRefusal extends Error {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

/**
 * Refuses a Host that is not this server's: with a name that points here, an attacker's page would be of the same
 * origin. Refuses what a browser says comes from another site, but for a link that leads here.
 */
export function refuseForeignRequest({ headers, method }: IncomingMessage, port: number): void {
  const host = headers.host ?? ''
  if (!ownHosts(port).includes(host)) {
    throw new PageRefusal(403, `The Host of this request must be 127.0.0.1:${port} or localhost:${port}.`)
  }
  const site = headers['sec-fetch-site']
  const isLink = method === 'GET' && headers['sec-fetch-mode'] === 'navigate'
  if (typeof site === 'string' && site !== 'same-origin' && site !== 'none' && !isLink) {
    throw new PageRefusal(403, 'Another site may not use this page.')
  }
}

/**
 * Refuses a POST without the Origin of the page, which a browser adds to every POST. Takes JSON only: a page of another
 * origin could send that type only after a preflight, which is never allowed.
 */
export function refuseForeignPost({ headers }: IncomingMessage): void {
  if (headers.origin !== `http://${headers.host}`) {
    throw new PageRefusal(403, `The Origin of a POST must be this page's: http://${headers.host}.`)
  }
  if (!/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')) {
    throw new PageRefusal(415, 'The Content-Type of a POST must be application/json.')
  }
}

/** The path after `/<token>/`, or nothing if the token is not ours. */
export function pathAfterToken(pathname: string, token: string): string | undefined {
  const [, given = '', rest] = /^\/([^/]*)\/(.*)$/s.exec(pathname) ?? []
  const expectedBytes = Buffer.from(token)
  const givenBytes = Buffer.from(given)
  if (givenBytes.length !== expectedBytes.length || !timingSafeEqual(givenBytes, expectedBytes))
    return undefined
  return rest
}

function ownHosts(port: number): string[] {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`]
  // A browser leaves out the port that belongs to the scheme.
  return port === 80 ? [...hosts, '127.0.0.1', 'localhost'] : hosts
}
