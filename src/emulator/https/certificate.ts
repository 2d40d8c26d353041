/**
 * The certificates that the emulator makes at its start (RFC 5280): an authority that only its tests trust, and one
 * certificate for loopback that the authority signed.
 *
 * Node.js can sign, but not write, certificates. `@oslojs/asn1` does the DER encoding because it is small: full X.509
 * libraries are ten times as large as the rest of the emulator.
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
import {
  ASN1BitString,
  ASN1Boolean,
  ASN1Class,
  type ASN1Encodable,
  ASN1EncodableSequence,
  ASN1EncodableSet,
  ASN1Form,
  ASN1Integer,
  ASN1ObjectIdentifier,
  ASN1OctetString,
  ASN1UTF8String,
  encodeASN1,
  encodeObjectIdentifier,
} from '@oslojs/asn1'

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
    extension(oid.basicConstraints, sequence(critical), critical),
    extension(oid.keyUsage, keyUsage.keyCertSignAndCrlSign, critical),
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
    extension(oid.basicConstraints, sequence(), critical),
    extension(oid.keyUsage, keyUsage.digitalSignature, critical),
    extension(oid.extendedKeyUsage, sequence(objectId(oid.serverAuth))),
    extension(oid.subjectAltName, sequence(...hosts.map(nameOf))),
  ])
}

function monthFrom(from: number): readonly [number, number] {
  return [from, from + 31 * dayMs]
}

/** RFC 5280 section 4.2.1.6: 2 is a DNS name, 7 an IP address. */
function nameOf(host: string): ASN1Encodable {
  switch (isIP(host)) {
    case 4:
      return implicit(7, Buffer.from(host.split('.').map(Number)))
    case 6:
      return implicit(7, bytesOfIpv6(host))
    default:
      return implicit(2, Buffer.from(host, 'ascii'))
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
  extensions: readonly ASN1Encodable[],
): string {
  const algorithm = sequence(objectId(oid.ecdsaWithSha256))
  const identifiers = [
    extension(oid.subjectKeyIdentifier, new ASN1OctetString(keyIdentifier(subject))),
    extension(oid.authorityKeyIdentifier, sequence(implicit(0, keyIdentifier(issuer)))),
  ]
  const tbsCertificate = sequence(
    explicit(0, new ASN1Integer(2n)), // version 3
    new ASN1Integer(BigInt(`0x01${randomBytes(15).toString('hex')}`)),
    algorithm,
    distinguishedName(issuer.name),
    sequence(...validity.map(utcTime)),
    distinguishedName(subject.name),
    // The encoder writes the header again: of the key of a P-256 pair, one byte of tag and one of length.
    value(ASN1Class.Universal, ASN1Form.Constructed, 16, publicKeyOf(subject).subarray(2)),
    explicit(3, sequence(...extensions, ...identifiers)),
  )
  const signature = sign('sha256', encodeASN1(tbsCertificate), issuer.privateKey)
  const der = encodeASN1(
    sequence(tbsCertificate, algorithm, new ASN1BitString(signature, signature.length * 8)),
  )
  return new X509Certificate(der).toString()
}

const oid = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
} as const

/** RFC 5280 section 4.2.1.3: DER omits the zero bits at the end of a bit string (X.690 section 11.2.2). */
const keyUsage = {
  digitalSignature: new ASN1BitString(Buffer.from([0x80]), 1),
  keyCertSignAndCrlSign: new ASN1BitString(Buffer.from([0x06]), 7),
}

function sequence(...elements: ASN1Encodable[]): ASN1Encodable {
  return new ASN1EncodableSequence(elements)
}

function objectId(dotted: string): ASN1Encodable {
  return new ASN1ObjectIdentifier(encodeObjectIdentifier(dotted))
}

/** An extension is not critical by default, and DER forbids writing a default. */
const critical = new ASN1Boolean(true)

function extension(id: string, content: ASN1Encodable, ...isCritical: ASN1Encodable[]): ASN1Encodable {
  return sequence(objectId(id), ...isCritical, new ASN1OctetString(encodeASN1(content)))
}

/** A value inside another tag. */
function explicit(tag: number, inner: ASN1Encodable): ASN1Encodable {
  return value(ASN1Class.ContextSpecific, ASN1Form.Constructed, tag, encodeASN1(inner))
}

/** A value with another tag in place of its own. */
function implicit(tag: number, contents: Uint8Array): ASN1Encodable {
  return value(ASN1Class.ContextSpecific, ASN1Form.Primitive, tag, contents)
}

function value(type: ASN1Class, form: ASN1Form, tag: number, contents: Uint8Array): ASN1Encodable {
  return { class: type, form, tag, contents: () => contents }
}

function distinguishedName(commonName: string): ASN1Encodable {
  const attribute = sequence(objectId(oid.commonName), new ASN1UTF8String(Buffer.from(commonName)))
  return sequence(new ASN1EncodableSet([attribute]))
}

/** RFC 5280 section 4.1.2.5: `YYMMDDHHMMSSZ`. */
function utcTime(epochMs: number): ASN1Encodable {
  const digits = new Date(epochMs).toISOString().replace(/^..|[-:T]|\.\d+/g, '')
  return value(ASN1Class.Universal, ASN1Form.Primitive, 23, Buffer.from(digits))
}

/** RFC 5280 section 4.2.1.2 leaves the method open; this is a digest over the whole public key structure. */
function keyIdentifier(holder: Holder): Uint8Array {
  return createHash('sha256').update(publicKeyOf(holder)).digest().subarray(0, 20)
}

function publicKeyOf({ publicKey }: Holder): Buffer {
  return publicKey.export({ type: 'spki', format: 'der' })
}
