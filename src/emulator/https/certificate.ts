/** Makes certificates (RFC 5280). Node.js can sign a certificate, but not write its DER (X.690): this file does. */
import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { isIP } from 'node:net'

/** A private key and the certificate for it, both as PEM. */
export interface KeyAndCertificate {
  readonly key: string
  readonly cert: string
}

const dayMs = 24 * 60 * 60 * 1000

/**
 * `host.docker.internal` is this machine for an app in a container; `emulator.test` is for tests with a proxy, which is never
 * asked for loopback (RFC 6761 section 6.2 reserves `.test`).
 */
const servedHosts = ['localhost', '127.0.0.1', '::1', 'host.docker.internal', 'emulator.test']

/** What an emulator serves with, and the certificate in PEM of the authority that signed it. */
export interface Certificates {
  readonly ca: string
  readonly tls: KeyAndCertificate
}

/** The authority's private key is not kept: nothing else can be signed with it. */
export function createLoopbackCertificate(alsoFor = 'localhost'): Certificates {
  // A name of its own for each authority, so that one trust store can hold those of two emulators.
  const authority = newHolder(`Notification emulator CA ${randomBytes(4).toString('hex')}`)
  const server = newHolder('localhost')
  const cert = serverCertificate(authority, server, [...new Set([...servedHosts, alsoFor])])
  return { ca: authorityCertificate(authority), tls: { key: keyOf(server), cert } }
}

/** Whether the certificates of an earlier start are whole, and still good in a month and for a name or an address. */
export function areReusable({ ca, tls }: Certificates, host: string): boolean {
  try {
    const server = new X509Certificate(tls.cert)
    const ends = [server, new X509Certificate(ca)].map(({ validTo }) => Date.parse(validTo))
    const isNamed = (isIP(host) ? server.checkIP(host) : server.checkHost(host)) !== undefined
    const isWhole = server.checkPrivateKey(createPrivateKey(tls.key))
    return isWhole && isNamed && Math.min(...ends) > Date.now() + 30 * dayMs
  } catch {
    return false
  }
}

type Validity = readonly [from: number, until: number]

/** From yesterday, for clocks that are behind. */
const aYear = (): Validity => [Date.now() - dayMs, Date.now() + 365 * dayMs]

/** The subject of a certificate, with its keys. */
type Holder = ReturnType<typeof newHolder>

export function newHolder(name: string) {
  return { name, ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) }
}

export function keyOf({ privateKey }: Holder): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

export function authorityCertificate(authority: Holder): string {
  return createCertificate(authority, authority, aYear(), [
    extension(oid.basicConstraints, sequence(critical), critical),
    extension(oid.keyUsage, keyUsage.keyCertSignAndCrlSign, critical),
  ])
}

export function serverCertificate(
  signer: Holder,
  server: Holder,
  hosts: readonly string[],
  validity = aYear(),
): string {
  return createCertificate(signer, server, validity, [
    extension(oid.basicConstraints, sequence(), critical),
    extension(oid.keyUsage, keyUsage.digitalSignature, critical),
    extension(oid.extendedKeyUsage, sequence(oid.serverAuth)),
    extension(oid.subjectAltName, sequence(...hosts.map(nameOf))),
  ])
}

/** RFC 5280 section 4.2.1.6: 2 is a DNS name, 7 an IP address. */
function nameOf(host: string): Buffer {
  if (host === '::1') return der(0x87, Buffer.alloc(15), Buffer.of(1))
  return isIP(host) ? der(0x87, Buffer.from(host.split('.').map(Number))) : der(0x82, Buffer.from(host))
}

/** RFC 5280 section 4.1, signed with ecdsa-with-SHA256 (RFC 5758 section 3.2). */
function createCertificate(
  issuer: Holder,
  subject: Holder,
  validity: Validity,
  extensions: readonly Buffer[],
): string {
  const algorithm = sequence(oid.ecdsaWithSha256)
  const identifiers = [
    extension(oid.subjectKeyIdentifier, octets(keyIdentifier(subject))),
    extension(oid.authorityKeyIdentifier, sequence(der(0x80, keyIdentifier(issuer)))),
  ]
  const tbsCertificate = sequence(
    der(0xa0, der(0x02, Buffer.of(2))), // version 3
    der(0x02, Buffer.of(1), randomBytes(15)), // serial number
    algorithm,
    distinguishedName(issuer.name),
    sequence(...validity.map(utcTime)),
    distinguishedName(subject.name),
    publicKeyOf(subject),
    der(0xa3, sequence(...extensions, ...identifiers)),
  )
  const signature = der(0x03, Buffer.of(0), sign('sha256', tbsCertificate, issuer.privateKey))
  return new X509Certificate(sequence(tbsCertificate, algorithm, signature)).toString()
}

/** A value in DER. None here is longer than 64 KiB. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const contents = Buffer.concat(parts)
  const { length } = contents
  const lengthBytes =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.of(tag, ...lengthBytes), contents])
}

const sequence = (...parts: readonly Uint8Array[]) => der(0x30, ...parts)
const octets = (contents: Uint8Array) => der(0x04, contents)
const objectId = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))

const oid = {
  ecdsaWithSha256: objectId('2a8648ce3d040302'),
  commonName: objectId('550403'),
  subjectKeyIdentifier: objectId('551d0e'),
  keyUsage: objectId('551d0f'),
  subjectAltName: objectId('551d11'),
  basicConstraints: objectId('551d13'),
  authorityKeyIdentifier: objectId('551d23'),
  extendedKeyUsage: objectId('551d25'),
  serverAuth: objectId('2b06010505070301'),
} as const

/** RFC 5280 section 4.2.1.3, as bit strings: how many bits at the end are unused, then the bits. */
const keyUsage = {
  digitalSignature: der(0x03, Buffer.of(7, 0x80)),
  keyCertSignAndCrlSign: der(0x03, Buffer.of(1, 0x06)),
}

/** An extension is not critical by default, and DER forbids writing a default. */
const critical = der(0x01, Buffer.of(0xff))

function extension(id: Buffer, content: Buffer, ...isCritical: Buffer[]): Buffer {
  return sequence(id, ...isCritical, octets(content))
}

function distinguishedName(commonName: string): Buffer {
  return sequence(der(0x31, sequence(oid.commonName, der(0x0c, Buffer.from(commonName)))))
}

/** RFC 5280 section 4.1.2.5: `YYMMDDHHMMSSZ`. */
function utcTime(epochMs: number): Buffer {
  const digits = new Date(epochMs).toISOString().replace(/^..|[-:T]|\.\d+/g, '')
  return der(0x17, Buffer.from(digits))
}

/** RFC 5280 section 4.2.1.2 leaves the method open; this is a digest over the whole public key structure. */
function keyIdentifier(holder: Holder): Uint8Array {
  return createHash('sha256').update(publicKeyOf(holder)).digest().subarray(0, 20)
}

function publicKeyOf({ publicKey }: Holder): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' })
}
