/** A load balancer that ends TLS, asks each process at `/readyz`, and passes callbacks to one that is ready. */
import { once } from 'node:events'
import { request } from 'node:http'
import { createServer } from 'node:https'
import { listen } from './listen.js'

export async function startBalancer(tls: { cert: string; key: string }) {
  /** The processes, as `http://127.0.0.1:…`. */
  const origins = new Set<string>()
  const ready = new Set<string>()
  const probe = setInterval(async () => {
    for (const origin of ready) if (!origins.has(origin)) ready.delete(origin)
    for (const origin of origins) {
      const answer = await fetch(`${origin}/readyz`, { headers: { connection: 'close' } }).catch(() => {})
      if (answer?.ok) ready.add(origin)
      else ready.delete(origin)
    }
  }, 100)
  const server = createServer(tls, (incoming, outgoing) => {
    const [origin] = ready
    if (origin === undefined) return outgoing.writeHead(503).end()
    // The next one is next.
    ready.delete(origin)
    ready.add(origin)
    const { headers, method } = incoming
    const passed = request(new URL(incoming.url ?? '/', origin), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    passed.on('error', () => outgoing.writeHead(502).end())
    incoming.pipe(passed)
  })
  return {
    origins,
    ready,
    port: await listen(server),
    async [Symbol.asyncDispose]() {
      clearInterval(probe)
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
