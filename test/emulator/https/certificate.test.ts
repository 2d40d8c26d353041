/** The emulator's certificates, with the bytes of their extensions: what one TLS library forgives another does not. */
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { areReusable, createLoopbackCertificate } from '../../../src/emulator/https/certificate.js'

// Both days of the month, both hours and minutes have two digits of their own.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2031, 8, 10, 6, 5, 4, 321) }))
afterEach(() => void vi.useRealTimers())

const keyIdentifier = (key: KeyObject) => {
  const spki = key.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(spki).digest('hex').slice(0, 40)
}

/** The last part of a certificate before its signature (RFC 5280 section 4.1). */
function extensionsOf({ raw, publicKey }: X509Certificate, authority: KeyObject): string {
  const subject = `301d0603551d0e04160414${keyIdentifier(publicKey)}`
  const identifiers = `${subject}301f0603551d23041830168014${keyIdentifier(authority)}`
  const hex = raw.toString('hex')
  const end = hex.indexOf(`${identifiers}300a06082a8648ce3d040302`)
  return end === -1 ? 'no identifiers' : hex.slice(0, end)
}

const read = ({ ca, tls }: ReturnType<typeof createLoopbackCertificate>) => ({
  authority: new X509Certificate(ca),
  server: new X509Certificate(tls.cert),
})
const servedHosts =
  'DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, DNS:host.docker.internal, DNS:emulator.test'
const aYear = { validFrom: 'Sep  9 06:05:04 2031 GMT', validTo: 'Sep  9 06:05:04 2032 GMT' }

test('an authority signs itself and the server’s certificate, both valid from yesterday for a year', () => {
  const certificate = createLoopbackCertificate()
  const { authority, server } = read(certificate)
  expect(authority).toMatchObject({ ...aYear, ca: true, issuer: authority.subject })
  expect(authority.subject).toMatch(/^CN=Notification emulator CA [0-9a-f]{8}$/)
  expect(authority.verify(authority.publicKey)).toBe(true)
  // basicConstraints: an authority; keyUsage: keyCertSign and cRLSign, and one unused bit. Both are critical.
  const ofAuthority = '300f0603551d130101ff040530030101ff300e0603551d0f0101ff040403020106'
  expect(extensionsOf(authority, authority.publicKey).endsWith(ofAuthority)).toBe(true)
  expect(server).toMatchObject({ ...aYear, ca: false, issuer: authority.subject, subject: 'CN=localhost' })
  expect(server.subjectAltName).toBe(servedHosts)
  expect(server.verify(authority.publicKey)).toBe(true)
  expect(server.checkPrivateKey(createPrivateKey(certificate.tls.key))).toBe(true)
  // No authority; digitalSignature, and 7 unused bits; extKeyUsage: serverAuth.
  const ofServer =
    '300c0603551d130101ff04023000300e0603551d0f0101ff04040302078030130603551d25040c300a06082b06010505070301'
  expect(extensionsOf(server, authority.publicKey)).toContain(`${ofServer}30510603551d11044a`)
})

test('every start has an authority, a key and positive serial numbers of 16 bytes of its own', () => {
  const [first, second] = [read(createLoopbackCertificate()), read(createLoopbackCertificate())]
  const all = [first, second].flatMap(({ authority, server }) => [authority, server])
  expect(new Set(all.map(({ serialNumber }) => serialNumber)).size).toBe(4)
  for (const { serialNumber } of all) expect(serialNumber).toMatch(/^01[0-9A-F]{30}$/)
  expect(first.authority.subject).not.toBe(second.authority.subject)
  expect(first.server.verify(second.authority.publicKey)).toBe(false)
})

test('certificates of an earlier start are reusable until a month before their end, for a name in them', () => {
  const certificates = createLoopbackCertificate('emulator')
  for (const host of ['localhost', '::1', 'emulator']) expect(areReusable(certificates, host)).toBe(true)
  for (const host of ['other', '10.0.0.1']) expect(areReusable(certificates, host)).toBe(false)
  vi.setSystemTime(Date.UTC(2032, 7, 10, 6, 5, 3))
  expect(areReusable(certificates, 'emulator')).toBe(true)
  vi.setSystemTime(Date.UTC(2032, 7, 10, 6, 5, 5))
  expect(areReusable(certificates, 'emulator')).toBe(false)
})
