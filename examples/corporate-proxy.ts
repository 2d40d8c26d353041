/**
 * From a network that is left through a proxy only, to a service whose certificate a private authority signed.
 * The proxy and the service run in here; run it with `npx tsx examples/corporate-proxy.ts`.
 *
 * Without any code, the environment does the same for every client that is given no `dispatcher`:
 *
 *     HTTPS_PROXY=http://user:password@proxy.example.com:3128  NO_PROXY=localhost,.intern.example.com
 *     NODE_EXTRA_CA_CERTS=/etc/ssl/corporate-ca.pem
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { ConnectionError, NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { ProxyAgent } from 'undici'

await using emulator = await startEmulator()
const proxy = await startProxy('user:password')

// To copy: the dispatcher. In production `ca` is the text of the authority's PEM file, read at start-up.
const dispatcher = new ProxyAgent({
  uri: proxy.url,
  token: `Basic ${Buffer.from('user:password').toString('base64')}`,
  requestTls: { ca: emulator.ca },
})
const client = new NotificationClient({ ...emulator.clientOptions, dispatcher })

const { subscriptionId } = await client.createSubscription({
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: 'https://app.example.com/notifications',
})
console.log(
  `Subscription ${subscriptionId} was created through the proxy, which saw ${proxy.tunnels.join(', ')}`,
)

// What it looks like when a part is missing: the messages say which one.
await explain('no authority', new ProxyAgent({ uri: proxy.url, token: 'Basic dXNlcjpwYXNzd29yZA==' }))
await explain('no password', new ProxyAgent({ uri: proxy.url, requestTls: { ca: emulator.ca } }))

// A dispatcher belongs to whoever made it: the client does not close it.
await client.close()
await dispatcher.close()
proxy.close()

async function explain(missing: string, dispatcher: ProxyAgent): Promise<void> {
  await using client = new NotificationClient({ ...emulator.clientOptions, dispatcher, retry: false })
  try {
    await client.getAccessToken()
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error
    console.log(`With ${missing}: ${error.message}`)
  }
  await dispatcher.close()
}

/** A forward proxy for TLS: all that it ever sees is the host and the port of a tunnel. */
async function startProxy(credentials: string) {
  const expected = `Basic ${Buffer.from(credentials).toString('base64')}`
  const tunnels: string[] = []
  const server = createServer().listen(0, '127.0.0.1')
  server.on('connect', ({ url = '', headers }, socket) => {
    socket.on('error', () => {})
    if (headers['proxy-authorization'] !== expected) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n')
      return
    }
    tunnels.push(`CONNECT ${url}`)
    const { hostname, port } = new URL(`tunnel://${url}`)
    const service = connect(Number(port), hostname, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      service.pipe(socket).pipe(service)
    }).on('error', () => socket.destroy())
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, tunnels, close: () => server.close() }
}
