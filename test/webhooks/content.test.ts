/** What is read of a body, whatever its headers say: one table through every way in. */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { DeliveryReceiver, safeParseDelivery } from 'notification-subscriber/webhooks'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { expectPage } from '../support/message-page.js'
import { lowEnergyDelivery } from './deliveries.js'
import { authenticated, recordingOnInvalid, secrets, transports } from './support.js'

const delivery = { ...lowEnergyDelivery(), added: 'Zoë, größer ?????>>>>>' }
const json = JSON.stringify(delivery)
const utf8 = Buffer.from(json)
const latin1 = Buffer.from(json, 'latin1')
const utf16le = Buffer.from(json, 'utf16le')
const utf16be = Buffer.from(utf16le).swap16()
const broken = Buffer.from(json.slice(0, -1))
const mark = (bytes: Buffer, ...markBytes: number[]) => Buffer.concat([Buffer.from(markBytes), bytes])
const base64 = (bytes: Buffer) => Buffer.from(bytes.toString('base64'))
const zstd = Object(process.getBuiltinModule('node:zlib')).zstdCompressSync
const layers = (count: number): Buffer => (count === 0 ? utf8 : gzipSync(layers(count - 1)))

const encoded = (coding: string) => ({ 'content-encoding': coding })
const charset = (name: string) => ({ 'content-type': `application/json; charset=${name}` })

type Verdict = 'delivered' | 'invalid' | 'too large'
type Row = readonly [what: string, headers: Record<string, string>, body: Buffer, verdict: Verdict]

const maxBodyBytes = 3_000

const rows: readonly Row[] = [
  ['JSON', {}, utf8, 'delivered'],
  ['JSON with white space around it', {}, Buffer.from(`\r\n ${json}\n`), 'delivered'],
  // Labels that are no compression, or no longer true.
  ...[
    'UTF-8',
    'utf8',
    'none',
    '',
    'identity',
    'Identity',
    'aws-chunked',
    'gzip',
    'x-gzip',
    'deflate',
    'br',
  ].map((coding): Row => [`JSON, labelled "${coding}"`, encoded(coding), utf8, 'delivered']),
  ['JSON, labelled with a long name', encoded('x'.repeat(100)), utf8, 'delivered'],
  ['JSON, labelled "gzip, identity"', encoded('gzip, identity'), utf8, 'delivered'],
  ['JSON of another content type', { 'content-type': 'text/csv' }, utf8, 'delivered'],
  ['JSON with a content type without a slash', { 'content-type': 'json' }, utf8, 'delivered'],
  ['JSON as a form', { 'content-type': 'application/x-www-form-urlencoded' }, utf8, 'delivered'],
  // Compressed.
  ['gzip', encoded('gzip'), gzipSync(utf8), 'delivered'],
  ['gzip, labelled "GZIP"', encoded('GZIP'), gzipSync(utf8), 'delivered'],
  ['gzip, labelled "x-gzip"', encoded('x-gzip'), gzipSync(utf8), 'delivered'],
  ['gzip, labelled "deflate"', encoded('deflate'), gzipSync(utf8), 'delivered'],
  ['gzip, labelled "br"', encoded('br'), gzipSync(utf8), 'delivered'],
  ['gzip without a label', {}, gzipSync(utf8), 'delivered'],
  ['gzip without its checksum', encoded('gzip'), gzipSync(utf8).subarray(0, -8), 'delivered'],
  ['gzip twice', encoded('gzip, gzip'), layers(2), 'delivered'],
  ['gzip twice, labelled once', encoded('gzip'), layers(2), 'delivered'],
  ['gzip, then br', encoded('gzip, br'), brotliCompressSync(gzipSync(utf8)), 'delivered'],
  ['deflate', encoded('deflate'), deflateSync(utf8), 'delivered'],
  ['deflate without a label', {}, deflateSync(utf8), 'delivered'],
  ['deflate with a small window', {}, deflateSync(utf8, { windowBits: 9 }), 'delivered'],
  ['deflate without its header', encoded('deflate'), deflateRawSync(utf8), 'delivered'],
  ['br', encoded('br'), brotliCompressSync(utf8), 'delivered'],
  // Node.js 20 has no zstd.
  ...(zstd ? [['zstd', encoded('zstd'), zstd(utf8), 'delivered'] as const] : []),
  ['base64url', {}, Buffer.from(utf8.toString('base64url')), 'delivered'],
  ['gzip in base64', encoded('gzip'), base64(gzipSync(utf8)), 'delivered'],
  // Charsets.
  ['UTF-8 with a mark', {}, mark(utf8, 0xef, 0xbb, 0xbf), 'delivered'],
  ['UTF-8, declared as latin-1', charset('iso-8859-1'), utf8, 'delivered'],
  ['UTF-8, declared as an unknown charset', charset('utf-99'), utf8, 'delivered'],
  ['latin-1', charset('iso-8859-1'), latin1, 'delivered'],
  ['latin-1, declared with a space', { 'content-type': 'text/plain;charset =latin1' }, latin1, 'delivered'],
  ['windows-1252 in quotes', charset('"windows-1252"'), latin1, 'delivered'],
  ['latin-1 in single quotes', charset("'iso-8859-1'"), latin1, 'delivered'],
  ['UTF-16 LE, declared', charset('utf-16le'), utf16le, 'delivered'],
  ['UTF-16 BE, declared as UTF-16', charset('utf-16'), utf16be, 'delivered'],
  ['UTF-16 LE with a mark', {}, mark(utf16le, 0xff, 0xfe), 'delivered'],
  ['UTF-16 BE with a mark', {}, mark(utf16be, 0xfe, 0xff), 'delivered'],
  ['UTF-16 LE with neither', {}, utf16le, 'delivered'],
  ['latin-1, compressed', { ...charset('latin1'), ...encoded('gzip') }, gzipSync(latin1), 'delivered'],
  // Wrapped by an adapter or a queue.
  ['base64', {}, base64(utf8), 'delivered'],
  ['base64 on many lines', {}, Buffer.from(base64(utf8).toString().replace(/.{76}/g, '$&\r\n')), 'delivered'],
  ['bytes in JSON by their index', {}, Buffer.from(JSON.stringify({ ...utf8 })), 'delivered'],
  ['bytes in JSON as a list', {}, Buffer.from(JSON.stringify([...utf8])), 'delivered'],
  ['a text in JSON', {}, Buffer.from(JSON.stringify(json)), 'delivered'],
  ['a Buffer in JSON', {}, Buffer.from(JSON.stringify(utf8)), 'delivered'],
  ['gzip as a Buffer in JSON', {}, Buffer.from(JSON.stringify(gzipSync(utf8))), 'delivered'],
  ['gzip of a Buffer in JSON', {}, gzipSync(JSON.stringify(utf8)), 'delivered'],
  ['JSON with NULs behind it', {}, Buffer.from(`${json}\0\0`), 'delivered'],
  ['JSON behind a prefix', {}, Buffer.from(`)]}',\n${json}`), 'delivered'],
  ['JSON in a form of many parts', {}, Buffer.from(`--x\r\nA: b\r\n\r\n${json}\r\n--x--`), 'delivered'],
  // What nobody can read.
  ['two deliveries', {}, Buffer.from(`${json}\n${json}`), 'invalid'],
  ['nothing', {}, Buffer.alloc(0), 'invalid'],
  ['white space', {}, Buffer.from(' \n'), 'invalid'],
  ['nothing, labelled "gzip"', encoded('gzip'), Buffer.alloc(0), 'invalid'],
  ['JSON without its end', {}, broken, 'invalid'],
  ...['utf-8', 'deflate', 'zstd'].map(
    (coding): Row => [`JSON without its end, labelled "${coding}"`, encoded(coding), broken, 'invalid'],
  ),
  ['JSON without its end, in gzip', encoded('gzip'), gzipSync(broken), 'invalid'],
  ['half of gzip', encoded('gzip'), gzipSync(utf8).subarray(0, 60), 'invalid'],
  ['half of gzip, labelled "x-gzip"', encoded('x-gzip'), gzipSync(utf8).subarray(0, 60), 'invalid'],
  ['half of gzip, not labelled', {}, gzipSync(utf8).subarray(0, 60), 'invalid'],
  ['br without a label', {}, brotliCompressSync(utf8), 'invalid'],
  ['br without its end', encoded('br'), brotliCompressSync(utf8).subarray(0, 60), 'invalid'],
  ['an encoding that is not known', encoded('x'.repeat(100)), Buffer.from([0x80, 0x81]), 'invalid'],
  ['gzip four times', encoded('gzip'), layers(4), 'invalid'],
  ['latin-1 without a declaration', {}, latin1, 'invalid'],
  ['latin-1, declared as UTF-8', charset('utf-8'), latin1, 'invalid'],
  ['text that is no base64', {}, Buffer.from('hello'), 'invalid'],
  ['a text in JSON in JSON', {}, Buffer.from(JSON.stringify(JSON.stringify(json))), 'invalid'],
  // Limits.
  ['JSON of the largest size', {}, Buffer.from(json.padEnd(maxBodyBytes - 3)), 'delivered'],
  ['JSON that is too large', {}, Buffer.from(json.padEnd(maxBodyBytes - 2)), 'too large'],
  ['gzip that is too large inside', encoded('gzip'), gzipSync(json.padEnd(maxBodyBytes)), 'too large'],
  ['gzip of a million characters', {}, gzipSync('x'.repeat(1_000_000)), 'too large'],
  ['gzip that is too large in its second layer', {}, gzipSync(gzipSync('x'.repeat(20_000))), 'too large'],
]

describe.each(transports)('a body through %s', (_, open) => {
  test('counts if its JSON can be read; otherwise onInvalid gets the body and the reviewed reason', async () => {
    const reasons: Record<string, string> = {}
    const { onInvalid, errors, problems } = recordingOnInvalid()
    const received: unknown[] = []
    const settings = { secrets, onInvalid, maxBodyBytes, logger: false } as const
    const receiver = new DeliveryReceiver(settings).onAny((_, context) => received.push(context.delivery))
    await using server = await open(receiver)
    for (const [what, headers, body, verdict] of rows) {
      const { status } = await server.send('POST', { ...authenticated, ...headers }, Uint8Array.from(body))
      const seen = { status, received: received.splice(0), problems: problems().length }
      if (verdict === 'too large') expect(seen, what).toEqual({ status: 413, received: [], problems: 0 })
      else if (verdict === 'invalid') expect(seen, what).toEqual({ status: 204, received: [], problems: 1 })
      else expect(seen, what).toEqual({ status: 204, received: [delivery], problems: 0 })
      if (verdict === 'invalid') reasons[what] = problems().join()
      errors.length = 0
    }
    await expectPage('encoded-bodies', reasons)
  })
})

test('parseDelivery reads the same bodies, unless they are compressed, or in a charset that it is not told', () => {
  for (const [what, , body, verdict] of rows) {
    const needsHeaders = body !== utf8 && /^(?:gzip|deflate|br|zstd|latin-1|windows-1252)\b/.test(what)
    const { data, error } = safeParseDelivery(body)
    if (verdict === 'invalid' || needsHeaders) expect(error?.issues, what).toHaveLength(1)
    else expect(data, what).toEqual(delivery)
  }
  const marked = { ...delivery, added: 'a mark \uFEFF inside' }
  expect(safeParseDelivery(`\uFEFF${JSON.stringify(marked)}`).data).toEqual(marked)
  expect(safeParseDelivery(undefined).error?.issues[0]?.message).toBe(
    'the body is undefined (did a body parser run, for this content type?)',
  )
  const signature = Buffer.from('28b52ffd', 'hex')
  for (const [format, bytes] of Object.entries({
    gzip: gzipSync(utf8),
    deflate: deflateSync(utf8),
    zstd: signature,
  })) {
    const [issue] = safeParseDelivery(bytes).error?.issues ?? []
    expect(issue?.message).toMatch(`the body is compressed with ${format}: decompress it first`)
  }
  // A byte of a signature is another, or a `deflate` needs a dictionary.
  for (const bytes of ['1f41', '418b', '28b52f41', '28b541fd', '28412ffd', '41b52ffd', '7802', '78bb']) {
    const [issue] = safeParseDelivery(Buffer.from(bytes, 'hex')).error?.issues ?? []
    expect(issue?.message, bytes).toMatch(/^the body is not (?:JSON|UTF-8)/)
  }
})

test('no decoder is made before the first body', async () => {
  const decoder = vi.fn()
  onTestFinished(() => void vi.unstubAllGlobals())
  vi.stubGlobal('TextDecoder', decoder)
  vi.resetModules()
  const { DeliveryReceiver } = await import('notification-subscriber/webhooks')
  new DeliveryReceiver({ secrets })
  expect(decoder).not.toHaveBeenCalled()
})
