/**
 * Reaches a service through a proxy, with a certificate of a private authority.
 *
 *     npm install ./notification-subscriber-*.tgz tsx
 *     npx tsx corporate-proxy.mts
 *
 * Here proxy and service run in this program. In production the proxy comes from the environment:
 *
 *     HTTPS_PROXY=http://user:password@proxy.example.com:3128  NO_PROXY=localhost,.intern.example.com
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { ConnectionError, NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'

await using emulator = await startEmulator()
// Requests to loopback addresses never go through a proxy, so the emulator gets a name that only the proxy knows.
const baseUrl = emulator.baseUrl.replace('127.0.0.1', 'emulator.test')
const auth = { ...emulator.clientOptions.auth, authUrl: baseUrl }
const proxy = await startProxy('user:password')
useProxy(`http://user:password@${proxy.host}`)

// To copy: the authority. In production it is the text of a PEM file: `readFileSync('/etc/ssl/corporate-ca.pem', 'utf8')`.
const client = new NotificationClient({ baseUrl, auth, ca: emulator.ca })

const { subscriptionId } = await client.createSubscription({
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: 'https://app.example.com/notifications',
})
console.log(
  `Subscription ${subscriptionId} was created through the proxy, which saw ${proxy.tunnels.join(', ')}`,
)
await client.close()

// If a part is missing, the message names it.
await explain('no authority', {})
useProxy(`http://${proxy.host}`)
await explain('no password', { ca: emulator.ca })
proxy.close()
console.log(
  'Next: set HTTPS_PROXY and NOTIFICATION_CA_FILE where your app runs; `npx --no notification-subscriber check` tries them.',
)

/** Sets the variable, as the environment would. */
function useProxy(address: string): void {
  Object.assign(process.env, { HTTPS_PROXY: address })
}

async function explain(missing: string, trusted: { ca?: string }): Promise<void> {
  await using client = new NotificationClient({ baseUrl, auth, ...trusted, retry: false })
  try {
    await client.getAccessToken()
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error
    console.log(`With ${missing}: ${error.message}`)
  }
}

/** A forward proxy for TLS. It only sees the host and the port of a tunnel. */
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
    const { port } = new URL(`tunnel://${url}`)
    const service = connect(Number(port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      service.pipe(socket).pipe(service)
    }).on('error', () => socket.destroy())
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { host: `127.0.0.1:${port}`, tunnels, close: () => server.close() }
}
