/** The emulator's certificates, byte by byte: what one TLS library forgives another does not. */
import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { areReusable, createLoopbackCertificate } from '../../../src/emulator/https/certificate.js'

// Both days of the month, both hours and minutes have two digits of their own.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2031, 8, 10, 6, 5, 4, 321) }))
afterEach(() => void vi.useRealTimers())

/** DER (X.690) as a list: `[tag, ...parts]` for what is constructed, `tag contents` for what is not. */
function outline(der: Buffer): unknown[] {
  const parts: unknown[] = []
  for (let at = 0; at < der.length; ) {
    const tag = der.readUInt8(at)
    let length = der.readUInt8(at + 1)
    let start = at + 2
    if (length > 0x80) {
      const bytes = length - 0x80
      length = der.readUIntBE(start, bytes)
      start += bytes
    }
    const contents = der.subarray(start, start + length)
    const name = tag.toString(16).padStart(2, '0')
    parts.push(tag & 0x20 ? [name, ...outline(contents)] : `${name} ${contents.toString('hex')}`)
    at = start + length
  }
  return parts
}

const hex = (text: string) => Buffer.from(text, 'latin1').toString('hex')
const spki = (key: KeyObject) => key.export({ type: 'spki', format: 'der' })
const keyIdentifier = (key: KeyObject) => createHash('sha256').update(spki(key)).digest('hex').slice(0, 40)
const distinguishedName = (commonName: string) => ['30', ['31', ['30', '06 550403', `0c ${hex(commonName)}`]]]
const ecdsaWithSha256 = ['30', '06 2a8648ce3d040302']
const critical = '01 ff'

/** RFC 5280 section 4.1: the certificate with these fields. */
function certificateWith(fields: {
  issuer: string
  subject: string
  validity: [string, string]
  publicKey: KeyObject
  issuerKey: KeyObject
  extensions: unknown[][]
}) {
  const { issuer, subject, validity, publicKey, issuerKey, extensions } = fields
  return [
    '30',
    [
      '30',
      ['a0', '02 02'],
      // The serial number: positive, and 16 bytes.
      expect.stringMatching(/^02 01[0-9a-f]{30}$/),
      ecdsaWithSha256,
      distinguishedName(issuer),
      ['30', ...validity.map((time) => `17 ${hex(time)}`)],
      distinguishedName(subject),
      ...outline(spki(publicKey)),
      [
        'a3',
        [
          '30',
          ...extensions.map((extension) => ['30', ...extension]),
          ['30', '06 551d0e', `04 0414${keyIdentifier(publicKey)}`],
          ['30', '06 551d23', `04 30168014${keyIdentifier(issuerKey)}`],
        ],
      ],
    ],
    ecdsaWithSha256,
    // A bit string without unused bits: the signature, which Node verifies below.
    expect.stringMatching(/^03 0030/),
  ]
}

const basicConstraints = '06 551d13'
const keyUsage = '06 551d0f'
const serverExtensions = (names: string) => [
  // An empty sequence: no authority.
  [basicConstraints, critical, '04 3000'],
  // digitalSignature, and 7 unused bits.
  [keyUsage, critical, '04 03020780'],
  // serverAuth.
  ['06 551d25', '04 300a06082b06010505070301'],
  ['06 551d11', `04 ${names}`],
]
const loopbackNames =
  '303282096c6f63616c686f737487047f000001871000000000000000000000000000000001820d656d756c61746f722e74657374'

function read({ ca, tls }: ReturnType<typeof createLoopbackCertificate>) {
  return { authority: new X509Certificate(ca), server: new X509Certificate(tls.cert) }
}

describe('RFC 5280: the certificates of the emulator', () => {
  test('the authority signs itself, may sign certificates, and is valid from yesterday for a year', () => {
    const { authority } = read(createLoopbackCertificate())
    const { publicKey } = authority
    expect(authority.subject).toMatch(/^CN=Notification emulator CA [0-9a-f]{8}$/)
    const name = authority.subject.replace('CN=', '')
    const expected = certificateWith({
      issuer: name,
      subject: name,
      validity: ['310909060504Z', '320909060504Z'],
      publicKey,
      issuerKey: publicKey,
      extensions: [
        [basicConstraints, critical, '04 30030101ff'],
        // keyCertSign and cRLSign, and one unused bit.
        [keyUsage, critical, '04 03020106'],
      ],
    })
    expect(outline(authority.raw)).toEqual([expected])
    expect(authority.verify(publicKey)).toBe(true)
  })

  test('the server’s is signed by the authority, for the names of loopback', () => {
    const certificate = createLoopbackCertificate()
    const { authority, server } = read(certificate)
    const expected = certificateWith({
      issuer: authority.subject.replace('CN=', ''),
      subject: 'localhost',
      validity: ['310909060504Z', '320909060504Z'],
      publicKey: server.publicKey,
      issuerKey: authority.publicKey,
      extensions: serverExtensions(loopbackNames),
    })
    expect(outline(server.raw)).toEqual([expected])
    expect(server.verify(authority.publicKey)).toBe(true)
    expect(server.checkPrivateKey(createPrivateKey(certificate.tls.key))).toBe(true)
  })

  test('every start has an authority, a key and serial numbers of its own', () => {
    const [first, second] = [read(createLoopbackCertificate()), read(createLoopbackCertificate())]
    const serialNumbers = [first, second].flatMap(({ authority, server }) => [
      authority.serialNumber,
      server.serialNumber,
    ])
    expect(new Set(serialNumbers).size).toBe(4)
    expect(first.authority.subject).not.toBe(second.authority.subject)
    expect(first.server.verify(second.authority.publicKey)).toBe(false)
  })
})

const servedHosts = 'DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, DNS:emulator.test'

describe('the names of the server’s certificate', () => {
  test.each([
    ['emulator.example', 'DNS:emulator.example'],
    ['10.1.2.3', 'IP Address:10.1.2.3'],
    ['2001:db8::10:0:1', 'IP Address:2001:DB8:0:0:0:10:0:1'],
    ['fe80::1', 'IP Address:FE80:0:0:0:0:0:0:1'],
    ['1:2:3:4:5:6:7:8', 'IP Address:1:2:3:4:5:6:7:8'],
    ['::ffff:10.1.2.3', 'IP Address:0:0:0:0:0:FFFF:A01:203'],
  ])('loopback and %s', (alsoFor, name) => {
    const { server } = read(createLoopbackCertificate(alsoFor))
    expect(server.subjectAltName).toBe(`${servedHosts}, ${name}`)
  })

  test('a loopback name is in it once', () => {
    const { server } = read(createLoopbackCertificate('::1'))
    expect(server.subjectAltName).toBe(servedHosts)
  })
})

test('certificates of an earlier start are reusable until a month before their end, for the names in them', () => {
  const certificates = createLoopbackCertificate('emulator')
  expect(areReusable(certificates, ['localhost', '::1', 'emulator'])).toBe(true)
  expect(areReusable(certificates, ['emulator', 'other'])).toBe(false)
  expect(areReusable(certificates, ['10.0.0.1'])).toBe(false)
  expect(areReusable({ ...certificates, ca: 'damaged' }, [])).toBe(false)
  vi.setSystemTime(Date.UTC(2032, 7, 10, 6, 5, 3))
  expect(areReusable(certificates, [])).toBe(true)
  vi.setSystemTime(Date.UTC(2032, 7, 10, 6, 5, 5))
  expect(areReusable(certificates, [])).toBe(false)
})
