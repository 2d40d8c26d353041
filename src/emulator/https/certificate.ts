/**
 * The certificates that the emulator makes at its start (RFC 5280): an authority that only its tests trust, and one
 * certificate for loopback that the authority signed.
 *
 * Node.js can sign, but not write, certificates, and X.509 libraries are larger than the rest of the emulator.
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
    extension(oid.basicConstraints, isCritical, sequence(yes)),
    extension(oid.keyUsage, isCritical, keyUsage.keyCertSignAndCrlSign),
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
    extension(oid.basicConstraints, isCritical, sequence()),
    extension(oid.keyUsage, isCritical, keyUsage.digitalSignature),
    extension(oid.extendedKeyUsage, [], sequence(oid.serverAuth)),
    extension(oid.subjectAltName, [], sequence(...hosts.map(nameOf))),
  ])
}

function monthFrom(from: number): readonly [number, number] {
  return [from, from + 31 * dayMs]
}

/** RFC 5280 section 4.2.1.6. */
function nameOf(host: string): Buffer {
  const version = isIP(host)
  if (version === 0) return der(tag.dnsName, Buffer.from(host, 'ascii'))
  return der(tag.ipAddress, version === 4 ? Buffer.from(host.split('.').map(Number)) : bytesOfIpv6(host))
}

function bytesOfIpv6(address: string): Buffer {
  // The URL parser writes an IPv4 address at the end as two groups, and the longest row of zeros as `::`.
  const sides = new URL(`https://[${address}]`).hostname.slice(1, -1).split('::')
  const [before = '', after = ''] = sides.map((side) =>
    side.replace(/[^:]+/g, (group) => group.padStart(4, '0')),
  )
  const [start, end] = [before.replaceAll(':', ''), after.replaceAll(':', '')]
  return Buffer.from(start + end.padStart(32 - start.length, '0'), 'hex')
}

/** RFC 5280 section 4.1, signed with ecdsa-with-SHA256 (RFC 5758 section 3.2). */
function createCertificate(
  issuer: Holder,
  subject: Holder,
  validity: readonly [from: number, until: number],
  extensions: readonly Buffer[],
): string {
  const algorithm = sequence(oid.ecdsaWithSha256)
  const tbsCertificate = sequence(
    der(tag.version, der(tag.integer, Buffer.from([2]))), // version 3
    der(tag.integer, Buffer.from([1]), randomBytes(15)), // the serial number, which is positive
    algorithm,
    distinguishedName(issuer.name),
    sequence(...validity.map(utcTime)),
    distinguishedName(subject.name),
    spkiOf(subject),
    der(
      tag.extensions,
      sequence(
        ...extensions,
        extension(oid.subjectKeyIdentifier, [], der(tag.octetString, keyIdentifier(subject))),
        extension(oid.authorityKeyIdentifier, [], sequence(der(tag.keyIdentifier, keyIdentifier(issuer)))),
      ),
    ),
  )
  const signature = sign('sha256', tbsCertificate, issuer.privateKey)
  return new X509Certificate(sequence(tbsCertificate, algorithm, bitString(0, signature))).toString()
}

/** X.690 section 8.1.2; those from `keyIdentifier` on mean something only in their structure of RFC 5280. */
const tag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectId: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  sequence: 0x30,
  set: 0x31,
  keyIdentifier: 0x80,
  dnsName: 0x82,
  ipAddress: 0x87,
  version: 0xa0,
  extensions: 0xa3,
} as const

/** A value in DER: its tag, its length and its contents (X.690 section 8.1). */
function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const encodedLength =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...encodedLength]), content])
}

function sequence(...elements: readonly Buffer[]): Buffer {
  return der(tag.sequence, ...elements)
}

function bitString(unusedBits: number, bytes: Uint8Array): Buffer {
  return der(tag.bitString, Buffer.from([unusedBits]), bytes)
}

/** Object identifiers: the contents are written in hex (X.690 section 8.19). */
const objectId = (contents: string) => der(tag.objectId, Buffer.from(contents, 'hex'))
const oid = {
  ecdsaWithSha256: objectId('2a8648ce3d040302'), // 1.2.840.10045.4.3.2
  commonName: objectId('550403'), // 2.5.4.3
  subjectKeyIdentifier: objectId('551d0e'), // 2.5.29.14
  keyUsage: objectId('551d0f'), // 2.5.29.15
  subjectAltName: objectId('551d11'), // 2.5.29.17
  basicConstraints: objectId('551d13'), // 2.5.29.19
  authorityKeyIdentifier: objectId('551d23'), // 2.5.29.35
  extendedKeyUsage: objectId('551d25'), // 2.5.29.37
  serverAuth: objectId('2b06010505070301'), // 1.3.6.1.5.5.7.3.1
} as const

/** RFC 5280 section 4.2.1.3: DER omits the zero bits at the end of a bit string (X.690 section 11.2.2). */
const keyUsage = {
  digitalSignature: bitString(7, Buffer.from([0x80])),
  keyCertSignAndCrlSign: bitString(1, Buffer.from([0x06])),
}

const yes = der(tag.boolean, Buffer.from([0xff]))
/** Left out for an extension that is not: DER forbids writing a default. */
const isCritical = [yes]

function extension(id: Buffer, critical: readonly Buffer[], value: Buffer): Buffer {
  return sequence(id, ...critical, der(tag.octetString, value))
}

function distinguishedName(commonName: string): Buffer {
  const attribute = sequence(oid.commonName, der(tag.utf8String, Buffer.from(commonName)))
  return sequence(der(tag.set, attribute))
}

/** RFC 5280 section 4.1.2.5: `YYMMDDHHMMSSZ`. */
function utcTime(epochMs: number): Buffer {
  const digits = new Date(epochMs).toISOString().replace(/\D/g, '')
  return der(tag.utcTime, Buffer.from(`${digits.slice(2, 14)}Z`))
}

function spkiOf({ publicKey }: Holder): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' })
}

/** RFC 5280 section 4.2.1.2 leaves the method open; this is a digest over the whole public key structure. */
function keyIdentifier(holder: Holder): Buffer {
  return createHash('sha256').update(spkiOf(holder)).digest().subarray(0, 20)
}
