/**
 * The certificates that the emulator makes at its start (RFC 5280): an authority that only its tests trust, and one
 * certificate for loopback that the authority signed.
 *
 * Node.js can sign, but not write, certificates, and full X.509 libraries are ten times as large as the rest of the
 * emulator: `der` writes the few fields.
 */
import {
  createHash,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { isIP } from 'node:net'

/** A private key and the certificate for it, both as PEM. */
export interface KeyAndCertificate {
  /** PEM of the private key. */
  readonly key: string
  /** PEM of the certificate. */
  readonly cert: string
}

const dayMs = 24 * 60 * 60 * 1000

const tag = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  utf8String: 0x0c,
  utcTime: 0x17,
  sequence: 0x30,
  set: 0x31,
} as const

const isTrue = der(0x01, [0xff])
const objectId = (hex: string) => der(0x06, Buffer.from(hex, 'hex'))
const ecdsaWithSha256 = objectId('2a8648ce3d040302')
const commonName = objectId('550403')
const subjectKeyIdentifier = objectId('551d0e')
const keyUsage = objectId('551d0f')
const subjectAltName = objectId('551d11')
const basicConstraints = objectId('551d13')
const authorityKeyIdentifier = objectId('551d23')
const extendedKeyUsage = objectId('551d25')
const serverAuth = objectId('2b06010505070301')

/** Loopback, and a name for tests with a proxy, which is never asked for loopback. RFC 6761 section 6.2 reserves `.test`. */
const servedHosts = ['localhost', '127.0.0.1', '::1', 'emulator.test']

/**
 * Makes a new authority and a certificate by it for loopback, `emulator.test` and the host given, valid from yesterday
 * for a month. The authority's private key is not kept: nothing else can be signed with it.
 */
export function createLoopbackCertificate(alsoFor = 'localhost'): { ca: string; tls: KeyAndCertificate } {
  // A name of its own for each authority, so that one trust store can hold those of two emulators.
  const authority = newHolder(`Notification emulator CA ${randomBytes(4).toString('hex')}`)
  const server = newHolder('localhost')
  const cert = serverCertificate(authority, server, [...new Set([...servedHosts, alsoFor])])
  return { ca: authorityCertificate(authority), tls: { key: keyOf(server), cert } }
}

/** The subject of a certificate, with its keys. */
export interface Holder {
  readonly name: string
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

export function newHolder(name: string): Holder {
  return { name, ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) }
}

export function keyOf({ privateKey }: Holder): string {
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** The certificate as PEM of an authority, signed by itself. */
export function authorityCertificate(authority: Holder): string {
  return createCertificate(authority, authority, monthFrom(Date.now() - dayMs), [
    extension(basicConstraints, der(tag.sequence, isTrue), isTrue),
    // keyCertSign and cRLSign; one bit is unused.
    extension(keyUsage, der(tag.bitString, [0x01, 0x06]), isTrue),
  ])
}

/** The certificate as PEM of a server at these hosts. Times in milliseconds since 1970. */
export function serverCertificate(
  signer: Holder,
  server: Holder,
  hosts: readonly string[],
  validity: readonly [from: number, until: number] = monthFrom(Date.now() - dayMs),
): string {
  return createCertificate(signer, server, validity, [
    extension(basicConstraints, der(tag.sequence), isTrue),
    // digitalSignature; seven bits are unused.
    extension(keyUsage, der(tag.bitString, [0x07, 0x80]), isTrue),
    extension(extendedKeyUsage, der(tag.sequence, serverAuth)),
    extension(subjectAltName, der(tag.sequence, ...hosts.map(nameOf))),
  ])
}

function monthFrom(from: number): readonly [number, number] {
  return [from, from + 31 * dayMs]
}

/** RFC 5280 section 4.2.1.6: 2 is a DNS name, 7 an IP address. */
function nameOf(host: string): Buffer {
  switch (isIP(host)) {
    case 4:
      return der(0x87, host.split('.').map(Number))
    case 6:
      return der(0x87, bytesOfIpv6(host))
    default:
      return der(0x82, Buffer.from(host, 'ascii'))
  }
}

function bytesOfIpv6(address: string): Buffer {
  // The URL parser writes an IPv4 address at the end as two groups, and the longest row of zeros as `::`.
  const sides = new URL(`https://[${address}]`).hostname.slice(1, -1).split('::')
  const [before = '', after = ''] = sides.map((side) =>
    side.replace(/[^:]+/g, (group) => group.padStart(4, '0')).replaceAll(':', ''),
  )
  return Buffer.from(before + after.padStart(32 - before.length, '0'), 'hex')
}

/** RFC 5280 section 4.1, signed with ecdsa-with-SHA256 (RFC 5758 section 3.2). */
function createCertificate(
  issuer: Holder,
  subject: Holder,
  validity: readonly [from: number, until: number],
  extensions: readonly Buffer[],
): string {
  const algorithm = der(tag.sequence, ecdsaWithSha256)
  const identifiers = [
    extension(subjectKeyIdentifier, der(tag.octetString, keyIdentifier(subject))),
    extension(authorityKeyIdentifier, der(tag.sequence, der(0x80, keyIdentifier(issuer)))),
  ]
  const content = der(
    tag.sequence,
    der(0xa0, der(tag.integer, [2])), // version 3
    der(tag.integer, [1, ...randomBytes(15)]),
    algorithm,
    distinguishedName(issuer.name),
    der(tag.sequence, ...validity.map(utcTime)),
    distinguishedName(subject.name),
    publicKeyOf(subject),
    der(0xa3, der(tag.sequence, ...extensions, ...identifiers)),
  )
  const signature = der(tag.bitString, [0], sign('sha256', content, issuer.privateKey))
  return new X509Certificate(der(tag.sequence, content, algorithm, signature)).toString()
}

function distinguishedName(name: string): Buffer {
  const attribute = der(tag.sequence, commonName, der(tag.utf8String, Buffer.from(name)))
  return der(tag.sequence, der(tag.set, attribute))
}

/** RFC 5280 section 4.1.2.5: `YYMMDDHHMMSSZ`. */
function utcTime(epochMs: number): Buffer {
  const digits = new Date(epochMs).toISOString().slice(2, 19).replace(/\D/g, '')
  return der(tag.utcTime, Buffer.from(`${digits}Z`))
}

/** RFC 5280 section 4.2.1.2 leaves the method open; this is a digest over the whole public key structure. */
function keyIdentifier(holder: Holder): Buffer {
  return createHash('sha256').update(publicKeyOf(holder)).digest().subarray(0, 20)
}

function publicKeyOf({ publicKey }: Holder): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' })
}

/** `critical` is false by default, and DER forbids writing a default. */
function extension(id: Buffer, value: Buffer, critical: Buffer = Buffer.of()): Buffer {
  return der(tag.sequence, id, critical, der(tag.octetString, value))
}

/** A value in DER: its tag, its length, its contents. None here has 64 KiB. */
function der(tag: number, ...parts: Iterable<number>[]): Buffer {
  const contents = parts.flatMap((part) => [...part])
  const { length } = contents
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.from([tag, ...size, ...contents])
}
