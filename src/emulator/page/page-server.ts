/** Serves the page: plain HTTP on loopback, at a path that cannot be guessed (docs/emulator.md, The page). */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { ConfigurationError, InvalidRequestError } from '../../errors.js'
import { messageOf } from '../../shared/excerpt.js'
import { formatIssues } from '../../shared/issues.js'
import type { PageControls } from '../page-controls.js'
import { actionNamed } from './actions.js'
import { EventStream } from './event-stream.js'
import { Journal } from './journal.js'
import { loadPageHtml } from './page-html.js'
import { PageRefusal, pathAfterToken, refuseForeignPost, refuseForeignRequest } from './request-guard.js'

/** The largest body of a POST, in bytes: as much as the emulator takes at its own address. */
const maxBodyBytes = 1024 * 1024

/** A page server that is listening. */
export interface PageServer {
  /** `http://127.0.0.1:<port>/<token>/`: who knows this address can do everything that the page can. */
  readonly url: string
  /** Stops listening and closes every connection, open streams of events included. */
  close(): Promise<void>
}

/**
 * Starts the page of an emulator, on 127.0.0.1 whatever the emulator's own host is.
 *
 * @throws `ConfigurationError` for a port that is taken
 */
export async function startPageServer(
  controls: PageControls,
  options: { port: number },
): Promise<PageServer> {
  const html = await loadPageHtml()
  const token = randomBytes(18).toString('base64url')
  const journal = new Journal(controls)
  const events = new EventStream(journal, randomBytes(6).toString('base64url'))
  const server = createServer()
  const port = await listen(server, options.port)
  const headers = securityHeaders(html)

  const stopWatching = controls.watch((change) => {
    journal.add(change)
    events.announce()
  })
  server.on('request', (request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    answer(request, response).catch((error: unknown) => sendError(response, error))
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    refuseForeignRequest(request, port)
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const path = pathAfterToken(pathname, token)
    if (path === undefined)
      throw new PageRefusal(404, 'Nothing is here: is this the address of an earlier start?')
    const action = actionNamed(path.replace(/^api\//, ''))
    if (path.startsWith('api/') && action !== undefined) {
      refuseMethodBut('POST', request)
      refuseForeignPost(request)
      return sendJson(response, 200, await action(controls.emulator, await readJson(request), journal))
    }
    refuseMethodBut('GET', request)
    if (path === '') return send(response, 200, 'text/html; charset=utf-8', html)
    if (path === 'events') return events.open(request, response)
    if (path === 'ca.pem') {
      response.setHeader('content-disposition', 'attachment; filename="emulator-ca.pem"')
      return send(response, 200, 'application/x-pem-file', controls.emulator.ca)
    }
    throw new PageRefusal(404, 'There is nothing at this path.')
  }

  let closed: Promise<void> | undefined
  async function close(): Promise<void> {
    stopWatching()
    events.close()
    const serverClosed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await serverClosed
  }
  return {
    url: `http://127.0.0.1:${port}/${token}/`,
    close() {
      closed ??= close()
      return closed
    },
  }
}

async function listen(server: Server, port: number): Promise<number> {
  server.listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (cause) {
    const message =
      Object(cause).code === 'EADDRINUSE'
        ? `${port} of 127.0.0.1 is taken: choose another, or 0 for any free one`
        : `${port} of 127.0.0.1 cannot be listened on: ${messageOf(cause)}`
    const issues = [{ path: ['page', 'port'], message }]
    throw new ConfigurationError(`The page cannot be served: ${formatIssues(issues)}.`, { issues }, { cause })
  }
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : port
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
    'x-frame-options': 'DENY',
  }
}

function hashOf(element: 'script' | 'style', html: string): string {
  const [, text = ''] = new RegExp(`<${element}[^>]*>(.*?)</${element}>`, 's').exec(html) ?? []
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

function refuseMethodBut(allowed: 'GET' | 'POST', { method }: IncomingMessage): void {
  if (method === allowed) return
  throw new PageRefusal(405, `Only ${allowed} will do here.`, { allow: allowed })
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    length += chunk.length
    if (length > maxBodyBytes) {
      throw new PageRefusal(413, `The body is over ${maxBodyBytes} bytes.`, { connection: 'close' })
    }
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    throw new PageRefusal(400, 'The body is not JSON.')
  }
}

function sendError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy()
  } else if (error instanceof PageRefusal) {
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value)
    sendJson(response, error.status, { message: error.message, issues: [] })
  } else if (error instanceof InvalidRequestError) {
    sendJson(response, 400, { message: error.message, issues: error.issues })
  } else {
    sendJson(response, 500, { message: 'The emulator failed at this.', issues: [] })
  }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  send(response, status, 'application/json', JSON.stringify(body))
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
