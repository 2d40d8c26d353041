/** What is read of a body, whatever its headers say: one table through every way in. */
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { safeParseDelivery } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import { expectPage } from '../support/message-page.js'
import { lowEnergyDelivery } from './deliveries.js'
import { authenticated, recordingReceiver, transports } from './support.js'

const delivery = { ...lowEnergyDelivery(), added: 'Zoë, größer ?????>>>>>' }
const json = JSON.stringify(delivery)
const utf8 = Buffer.from(json)
const latin1 = Buffer.from(json, 'latin1')
const broken = Buffer.from(json.slice(0, -1))
const mark = (bytes: Buffer, ...markBytes: number[]) => Buffer.concat([Buffer.from(markBytes), bytes])

const encoded = (coding: string) => ({ 'content-encoding': coding })
const charset = (name: string) => ({ 'content-type': `application/json; charset=${name}` })

type Verdict = 'delivered' | 'invalid' | 'too large'
type Row = readonly [what: string, headers: Record<string, string>, body: Buffer, verdict: Verdict]

const maxBodyBytes = 3_000

const rows: readonly Row[] = [
  ['JSON', {}, utf8, 'delivered'],
  ['JSON with white space around it', {}, Buffer.from(`\r\n ${json}\n`), 'delivered'],
  // Labels that are no compression, or no longer true.
  ...['identity', 'gzip', 'x'.repeat(100)].map(
    (coding): Row => [`JSON, labelled "${coding}"`, encoded(coding), utf8, 'delivered'],
  ),
  ['JSON as a form', { 'content-type': 'application/x-www-form-urlencoded' }, utf8, 'delivered'],
  ['JSON with a content type without a slash', { 'content-type': 'json' }, utf8, 'delivered'],
  [
    'a delivery beside what looks like wrapped bytes',
    {},
    Buffer.from(`{"data":[123],${json.slice(1)}`),
    'delivered',
  ],
  ['UTF-8 with a mark', {}, mark(utf8, 0xef, 0xbb, 0xbf), 'delivered'],
  ['UTF-8, declared as latin-1', charset('iso-8859-1'), utf8, 'delivered'],
  ['UTF-8, declared as an unknown charset', charset('utf-99'), utf8, 'delivered'],
  // What 0.5 decoded, and the service does not send.
  ['gzip without a label', {}, gzipSync(utf8), 'invalid'],
  ['Brotli', encoded('Br'), brotliCompressSync(utf8), 'invalid'],
  ['Brotli without a label', {}, brotliCompressSync(utf8), 'invalid'],
  ['UTF-16 with a mark', {}, mark(Buffer.from(json, 'utf16le'), 0xff, 0xfe), 'invalid'],
  ['UTF-16 of ASCII alone', {}, Buffer.from('{"subscriptionId":1}', 'utf16le'), 'invalid'],
  ['latin-1, declared', charset('iso-8859-1'), latin1, 'invalid'],
  ['base64', {}, Buffer.from(utf8.toString('base64')), 'invalid'],
  ['a text in JSON', {}, Buffer.from(JSON.stringify(json)), 'invalid'],
  // What nobody can read.
  ['two deliveries', {}, Buffer.from(`${json}\n${json}`), 'invalid'],
  ['nothing', {}, Buffer.alloc(0), 'invalid'],
  ['JSON without its end', {}, broken, 'invalid'],
  // Limits.
  ['JSON of the largest size', {}, Buffer.from(json.padEnd(maxBodyBytes - 3)), 'delivered'],
  ['JSON that is too large', {}, Buffer.from(json.padEnd(maxBodyBytes - 2)), 'too large'],
]

describe.each(transports)('a body through %s', (_, open) => {
  test('counts if its JSON can be read; otherwise onInvalid gets the body and the reviewed reason', async () => {
    const reasons: Record<string, string> = {}
    const { receiver, received, errors, problems } = recordingReceiver({ maxBodyBytes })
    await using server = await open(receiver)
    for (const [what, headers, body, verdict] of rows) {
      const { status } = await server.send('POST', { ...authenticated, ...headers }, Uint8Array.from(body))
      expect({ status, received: received.splice(0), problems: errors.length }, what).toEqual({
        status: verdict === 'too large' ? 413 : 204,
        received: verdict === 'delivered' ? [expect.objectContaining(delivery)] : [],
        problems: verdict === 'invalid' ? 1 : 0,
      })
      if (verdict === 'invalid') {
        expect(Buffer.from(errors[0]?.body as Uint8Array)).toEqual(body)
        reasons[what] = problems().join('; ')
      }
      errors.length = 0
    }
    await expectPage('encoded-bodies', reasons)
  })
})

test('parseDelivery reads the same bodies', () => {
  for (const [what, , body, verdict] of rows) {
    const { data, error } = safeParseDelivery(body)
    if (verdict === 'invalid') expect(error, what).toBeDefined()
    else expect(data, what).toMatchObject(delivery)
  }
  const marked = { ...delivery, added: 'a mark \uFEFF inside' }
  expect(safeParseDelivery(`\uFEFF${JSON.stringify(marked)}`).data).toEqual(marked)
  expect(safeParseDelivery(undefined).error?.issues[0]?.message).toBe(
    'the body is undefined (did a body parser run, for this content type?)',
  )
})
