/** Starts an emulator. */
import { Emulator } from './emulator.js'
import { type EmulatorOptions, resolveOptions } from './emulator-options.js'
import { createLoopbackCertificate } from './https/certificate.js'
import { HttpsServer } from './https/https-server.js'

/**
 * Starts the notification service in this process, by default on a free port of 127.0.0.1: HTTPS with a certificate
 * made now, signed access tokens, real callbacks. Close the emulator when the test is over.
 *
 * @throws `ConfigurationError` for options that cannot work, also for a port that is taken
 *
 * @example
 * ```ts
 * const emulator = await startEmulator()
 * const client = new NotificationClient(emulator.clientOptions)
 * await client.createSubscription({
 *   notificationTypes: ['call-score'],
 *   usernames: ['alice'],
 *   callbackUrl: 'https://localhost:8443/notifications', // a test's own server, with `emulator.tls`
 * })
 * const [callback] = await emulator.notify({
 *   type: 'cxScoreUpdated',
 *   category: 'call-score',
 *   username: 'alice',
 *   payload: { score: 4.2 },
 * })
 * console.log(callback?.status ?? callback?.error)
 * await client.close()
 * await emulator.close()
 * ```
 */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const resolved = resolveOptions(options)
  const { tls, ca, host, port } = resolved
  const certificate =
    tls !== undefined && ca !== undefined ? { tls, ca } : createLoopbackCertificate({ alsoFor: host })
  const server = await HttpsServer.listen(certificate.tls, host, port)
  const emulator = new Emulator(resolved, certificate, server)
  if (resolved.page === false) return emulator
  try {
    await emulator.servePage(resolved.page === true ? 0 : resolved.page.port)
  } catch (error) {
    await emulator.close()
    throw error
  }
  return emulator
}
