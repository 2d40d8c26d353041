import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type EntryFields,
  type EntryState,
  type FileFields,
  fieldsIn,
  lineOf,
  nameOf,
  parseName,
  placesIn,
  stateOf,
} from '../../src/spool/format.js'

const count = (max = 2 ** 40) => fc.nat({ max })
const fileFields: fc.Arbitrary<FileFields> = fc.record({
  kind: fc.constantFrom('open', 'closed', 'invalid', 'stuck', 'unreadable'),
  id: count(2 ** 50),
  lastId: count(2 ** 50),
  count: count(5_000),
  size: fc.integer({ min: 5_000, max: 2 ** 27 }),
  oldestAt: count(),
})

const fileId = 2 ** 50 + 7

function contentFor(id: number, text: string): EntryFields {
  return { id, receivedAt: 1_700_000_000_000 + id, traceparent: undefined, text }
}

test('a name is read back as the fields that it was made from', () => {
  fc.assert(
    fc.property(fileFields, (fields) => {
      expect(parseName(nameOf(fields))).toEqual(fields)
    }),
  )
})

test('a name with one character changed is not believed', () => {
  fc.assert(
    fc.property(fileFields, fc.nat(), fc.constantFrom(...'0123456789abz-.'), (fields, at, other) => {
      const name = nameOf(fields)
      const index = at % name.length
      fc.pre(name[index] !== other)
      expect(parseName(name.slice(0, index) + other + name.slice(index + 1))).toBe('unknown')
    }),
  )
})

test('an unfinished file is recognized by its exact name, and a foreign file is not', () => {
  const fields = { id: 1, lastId: 1, count: 1, size: 9, oldestAt: 5 }
  const letter = nameOf({ kind: 'stuck', ...fields })
  expect(parseName(`${letter}.new`)).toBe('unfinished')
  const ours = [`${letter}.damaged`, '0123456789ab-16.lock', '0123456789ab-1000.lock.new']
  expect(ours.map(parseName)).toEqual(['other', 'other', 'other'])
  const others = [
    'readme.txt',
    '0123.closed',
    '0123.batch',
    '0123.closed.new',
    'my.stuck.new',
    'yarn.lock',
    'x0123456789ab-16.lock',
    '0123456789ab-16.lock.old',
    `${letter}.new.new`,
    letter.replace(/^0/, ''),
    'x0000000000000-1795705279125000-0-0-4-856-64937a1f.batch',
    '0000000000000-1795705279125000-0-0-4-856-64937a1f.batch.old',
  ]
  for (const name of [...others, `${letter}\n`, `\n${letter}`]) {
    expect(parseName(name), JSON.stringify(name)).toBe('unknown')
  }
})

/** The entries with their texts. */
function contentOf(bytes: Buffer, id: number, size = bytes.length) {
  const { places, damagedAt } = placesIn(bytes, id, size)
  const entries = places.map((place) => {
    const line = bytes.subarray(place.offset, place.offset + place.length)
    return { ...(fieldsIn(line, id) ?? contentFor(0, 'damaged')), ...place }
  })
  return { entries, damagedAt }
}

const states: fc.Arbitrary<EntryState> = fc.record({
  attempts: fc.nat({ max: 99_999 }),
  dueAt: fc.nat({ max: 2 ** 43 }),
  reportedAt: fc.nat({ max: 2 ** 43 }),
  crashes: fc.nat({ max: 9 }),
})
const traceparents = fc.option(fc.constant(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`), { nil: undefined })

test('lines are read back with their states, but for those that are done', () => {
  const entry = fc.tuple(fc.jsonValue(), states, traceparents, fc.boolean())
  fc.assert(
    fc.property(fc.array(entry, { minLength: 1, maxLength: 9 }), (given) => {
      const entries = given.map(([value, state, traceparent, isDone], index) => {
        const content = { ...contentFor(5 + index, JSON.stringify(value)), traceparent }
        return { ...content, ...state, isDone, line: lineOf(fileId, content, state) }
      })
      let offset = 1
      const bytes = Buffer.from(entries.map(({ line }) => line).join(''))
      const expected = []
      for (const { line, isDone, ...rest } of entries) {
        const length = Buffer.byteLength(line) - 2
        if (isDone) bytes.write(stateOf(rest, isDone), offset, 'latin1')
        else expected.push({ ...rest, offset, length })
        offset += length + 2
      }
      expect(contentOf(bytes, fileId)).toEqual({ entries: expected, damagedAt: [] })
    }),
  )
})

test('a line of another file is damage, and so is one that is there twice', () => {
  const line = lineOf(fileId, contentFor(5, '[]'))
  expect(contentOf(Buffer.from(line), fileId + 1)).toEqual({ entries: [], damagedAt: [1] })
  const twice = contentOf(Buffer.from(line + line), fileId)
  expect(twice).toMatchObject({ entries: [{ id: 5 }], damagedAt: [line.length + 1] })
})

test('an entry that became line breaks is damage, reported where the next entry begins', () => {
  const [lost = '', whole = ''] = [5, 6].map((id) => lineOf(fileId, contentFor(id, '[]')))
  const read = contentOf(Buffer.from('\n'.repeat(lost.length) + whole), fileId)
  expect(read).toMatchObject({ entries: [{ id: 6 }], damagedAt: [lost.length + 1] })
})
