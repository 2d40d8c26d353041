/** Serves the page: plain HTTP on loopback, at a path that cannot be guessed (docs/emulator.md, The page). */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { InvalidRequestError } from '../../errors.js'
import { readUpTo } from '../../shared/bounded-bytes.js'
import { configurationError, parseJson } from '../../shared/validation.js'
import { listen, send } from '../https/https-server.js'
import { Refusal } from '../service/requests.js'
import { maxBodyBytes } from '../service/service.js'
import { actionNamed } from './actions.js'
import { EventStream } from './events.js'
import { masked, plain } from './mask.js'
import type { PageHost } from './views.js'

export type PageServer = Awaited<ReturnType<typeof startPageServer>>

/**
 * Starts the page of an emulator, always on 127.0.0.1. Every program that knows the address `url` can use all actions of the
 * page. `close` closes every connection, open streams of events included.
 *
 * @param requestedPort - 0 for any free one
 * @throws `ConfigurationError` for a port in use, or if the file of the page is missing
 */
export async function startPageServer(host: PageHost, requestedPort = 0) {
  const html = await readPage()
  const token = randomBytes(18).toString('base64url')
  const server = createServer()
  const { port, close } = await listen(server, '127.0.0.1', requestedPort, 'page')
  const headers = securityHeaders(html)
  const events = new EventStream(host)

  server.on('request', (request, outgoing) => {
    for (const [name, value] of Object.entries(headers)) outgoing.setHeader(name, value)
    answer(request, outgoing)
      .catch(answerOfError)
      .then((response) => response && send(outgoing, response))
      .catch(() => outgoing.destroy())
  })

  /** Resolves with nothing where the answer is a stream. */
  async function answer(request: IncomingMessage, outgoing: ServerResponse): Promise<Response | undefined> {
    refuseForeignRequest(request)
    const [path = '', query] = afterToken(request.url ?? '', token).split('?', 2)
    const action = path.startsWith('api/') ? actionNamed(path.slice('api/'.length)) : undefined
    if (action !== undefined) {
      refuseMethodBut('POST', request)
      refuseForeignPost(request)
      return Response.json((await action(host, await readJson(request))) ?? {})
    }
    refuseMethodBut('GET', request)
    if (path === '') return new Response(html, { headers: { 'content-type': 'text/html; charset=utf-8' } })
    if (path === 'events') return events.open(outgoing, query === 'secrets' ? plain : masked)
    if (path !== 'ca.pem') throw new Refusal(404, 'There is nothing at this path.')
    const disposition = 'attachment; filename="emulator-ca.pem"'
    const headers = { 'content-type': 'application/x-pem-file', 'content-disposition': disposition }
    return new Response(host.emulator.ca, { headers })
  }

  return {
    url: `http://127.0.0.1:${port}/${token}/`,
    close() {
      events.close()
      return close()
    },
  }
}

/** The page is a file beside the emulator's entry point, and the bundler puts this module there or in the folder above. */
async function readPage(): Promise<string> {
  const folder = import.meta.dirname
  for (const path of ['page.html', 'emulator/page.html']) {
    try {
      return await readFile(join(folder, path), 'utf8')
    } catch {
      // The next path, or the message below.
    }
  }
  const message = `is a file of the package that is not at ${folder}: leave notification-subscriber/emulator out of bundles`
  throw configurationError('The page cannot be served')([{ path: ['page'], message }])
}

/** The page's one script and one style are named by their hashes; nothing else runs or is loaded. */
function securityHeaders(html: string): Readonly<Record<string, string>> {
  const policy = [
    `default-src 'none'`,
    `script-src ${hashOf('script', html)}`,
    `style-src ${hashOf('style', html)}`,
    `img-src data:`,
    `connect-src 'self'`,
    `base-uri 'none'`,
    `form-action 'none'`,
    `frame-ancestors 'none'`,
    `require-trusted-types-for 'script'`,
    `trusted-types 'none'`,
  ]
  return {
    'content-security-policy': policy.join('; '),
    'cache-control': 'no-store',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  }
}

function hashOf(element: 'script' | 'style', html: string): string {
  const [, text = ''] = new RegExp(`<${element}[^>]*>(.*?)</${element}>`, 's').exec(html) ?? []
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

function refuseMethodBut(allowed: 'GET' | 'POST', { method }: IncomingMessage): void {
  if (method === allowed) return
  throw new Refusal(405, `Only ${allowed} is allowed here.`, undefined, { allow: allowed })
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const { bytes, isComplete } = await readUpTo(maxBodyBytes, request.iterator({ destroyOnReturn: false }))
  if (isComplete) return parseJson(Buffer.from(bytes).toString('utf8'))
  throw new Refusal(413, `The body is over ${maxBodyBytes} bytes.`, undefined, { connection: 'close' })
}

function answerOfError(error: unknown): Response {
  if (error instanceof Refusal) {
    const { status, headers, message } = error
    return Response.json({ message }, { status, headers })
  }
  if (!(error instanceof InvalidRequestError)) {
    return Response.json({ message: 'The emulator failed to do this.' }, { status: 500 })
  }
  const { message, issues } = error
  return Response.json({ message, issues }, { status: 400 })
}

/**
 * Refuses another Host than loopback: with a name that points here, an attacker's page would be of the same origin. A
 * forwarded port may have another number. Refuses what a browser marks as from another site, except a link to this page.
 */
function refuseForeignRequest({ headers, method }: IncomingMessage): void {
  if (!/^(127\.0\.0\.1|localhost)(:\d+)?$/.test(headers.host ?? '')) {
    throw new Refusal(403, 'The Host of this request must be 127.0.0.1 or localhost.')
  }
  const site = headers['sec-fetch-site']
  const isLink = method === 'GET' && headers['sec-fetch-mode'] === 'navigate'
  if (typeof site === 'string' && site !== 'same-origin' && site !== 'none' && !isLink) {
    throw new Refusal(403, 'Another site may not use this page.')
  }
}

/** A browser adds the Origin to every POST, and sends JSON to another origin only after a preflight, which is never allowed. */
function refuseForeignPost({ headers }: IncomingMessage): void {
  if (headers.origin !== `http://${headers.host}`) {
    throw new Refusal(403, `The Origin of a POST must be this page's: http://${headers.host}.`)
  }
  if (!/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')) {
    throw new Refusal(415, 'The Content-Type of a POST must be application/json.')
  }
}

/** Path and query after `/<token>/`. */
function afterToken(target: string, token: string): string {
  const expected = Buffer.from(`/${token}/`)
  const given = Buffer.from(target).subarray(0, expected.length)
  if (given.length === expected.length && timingSafeEqual(given, expected)) return target.slice(given.length)
  throw new Refusal(404, 'There is nothing here: is this the address of an earlier start?')
}
