/** Serves the page: plain HTTP on loopback, at a path that cannot be guessed (docs/emulator.md, The page). */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import { InvalidRequestError } from '../../errors.js'
import { BoundedBytes } from '../../shared/bounded-bytes.js'
import { parseJson } from '../../shared/validation.js'
import { listen, send } from '../https/https-server.js'
import { Refusal } from '../service/endpoint.js'
import { maxBodyBytes } from '../service/service.js'
import { actionAt } from './actions.js'
import { script, style } from './assets.js'
import { textToCopy } from './copy.js'
import type { PageHost } from './host.js'
import { pageOf } from './page.js'

export type PageServer = Awaited<ReturnType<typeof startPageServer>>

/** Starts the page of an emulator, always on 127.0.0.1. @throws `ConfigurationError` for a port in use */
export async function startPageServer(host: PageHost, requestedPort = 0) {
  const token = randomBytes(18).toString('base64url')
  const server = createServer()
  const { port, close } = await listen(server, '127.0.0.1', requestedPort, 'page')

  server.on('request', (request, outgoing) => {
    for (const [name, value] of Object.entries(securityHeaders)) outgoing.setHeader(name, value)
    answer(request)
      .catch(answerOfError)
      .then((response) => send(outgoing, response))
      .catch(() => outgoing.destroy())
  })

  async function answer(request: IncomingMessage): Promise<Response> {
    refuseForeignRequest(request)
    const [path = '', query] = afterToken(`${request.url}`, token).split('?', 2)
    const action = actionAt(path)
    const allow = action === undefined ? 'GET' : 'POST'
    if (request.method !== allow)
      throw new Refusal(405, `Only ${allow} is allowed here.`, undefined, { allow })
    if (action !== undefined) {
      refuseForeignPost(request)
      return Response.json((await action(host, await readJson(request))) ?? {})
    }
    if (path === '') {
      return new Response(pageOf(host, new URLSearchParams(query)).text, {
        headers: { 'content-type': 'text/html; charset=utf-8' },
      })
    }
    if (path === 'version') {
      return new Response(`${host.activity.version} ${JSON.stringify(host.faults.list())}`)
    }
    const text = path.startsWith('copy/') ? textToCopy(host, path.slice('copy/'.length)) : undefined
    if (text !== undefined) return new Response(text)
    if (path !== 'ca.pem') throw new Refusal(404, 'There is nothing at this path.')
    return new Response(host.ca, { headers: { 'content-type': 'application/x-pem-file' } })
  }

  return { url: `http://127.0.0.1:${port}/${token}/`, close }
}

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The page's one script and one style are named by their hashes; nothing else runs or is loaded. */
const policy = [
  `default-src 'none'`,
  `script-src ${hashOf(script)}`,
  `style-src ${hashOf(style)}`,
  `img-src data:`,
  `connect-src 'self'`,
  `base-uri 'none'`,
  `form-action 'self'`,
  `frame-ancestors 'none'`,
]

const securityHeaders = {
  'content-security-policy': policy.join('; '),
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const body = new BoundedBytes(maxBodyBytes)
  if (await body.addAll(request.iterator({ destroyOnReturn: false }))) return parseJson(body.text)
  throw new Refusal(413, `The body is over ${maxBodyBytes} bytes.`, undefined, { connection: 'close' })
}

function answerOfError(error: unknown): Response {
  if (error instanceof Refusal) return Response.json({ message: error.message }, error)
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
