import fc from 'fast-check'
import { expect, test } from 'vitest'
import { contentOf, doneMark, lineOf, nameOf, parseName } from '../../src/spool/format.js'

const count = (max = 2 ** 40) => fc.nat({ max })
const fileFields = fc.record({
  kind: fc.constantFrom('batch' as const, 'invalid' as const, 'stuck' as const, 'unreadable' as const),
  dueAt: fc.oneof(fc.constant(0), count()),
  id: count(2 ** 50),
  attempts: count(10_000),
  reportedAt: count(),
  count: count(5_000),
  bytes: count(),
})

test('a name is read back as the fields that it was made from', () => {
  fc.assert(
    fc.property(fileFields, (fields) => {
      expect(parseName(nameOf(fields))).toEqual(fields)
    }),
  )
})

test('names sort by when they are due, then by id', () => {
  fc.assert(
    fc.property(fileFields, fileFields, (a, b) => {
      const isBefore = a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.id < b.id)
      expect(nameOf(a) < nameOf(b)).toBe(
        isBefore || (a.dueAt === b.dueAt && a.id === b.id && nameOf(a) < nameOf(b)),
      )
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
  const fields = { dueAt: 0, id: 1, attempts: 0, reportedAt: 0, count: 1, bytes: 9 }
  const batch = nameOf({ kind: 'batch', ...fields })
  const letter = nameOf({ kind: 'stuck', ...fields })
  expect([`${batch}.new`, `${letter}.new`].map(parseName)).toEqual(['unfinished', 'unfinished'])
  const ours = [`${batch}.damaged`, '0123456789abcdef.lock', '0123456789abcdef.lock.new']
  expect(ours.map(parseName)).toEqual(['other', 'other', 'other'])
  const numbers = batch.replace(/^0+/, '0')
  const others = [
    'readme.txt',
    '0123.batch',
    '0123.batch.new',
    'my.stuck.new',
    'yarn.lock',
    `${batch}.new.new`,
  ]
  for (const name of [...others, numbers, `${batch}\n`, `\n${batch}`]) {
    expect(parseName(name), JSON.stringify(name)).toBe('unknown')
  }
})

test('lines are read back, but for those that are done', () => {
  const texts = ['{"a":1}', '{"ü":"\\n---------"}', '[]']
  const lines = texts.map((text, index) => lineOf(5 + index, text))
  const bytes = Buffer.concat(lines)
  const expected = { id: 5, count: 3, bytes: bytes.length }
  const read = contentOf(bytes, expected)
  expect(read.damagedAt).toEqual([])
  expect(read.lines.map(({ id, text }) => ({ id, text }))).toEqual(
    texts.map((text, index) => ({ id: 5 + index, text })),
  )
  for (const done of [[1], [2, 0], [0, 1, 2]]) {
    const copy = Buffer.from(bytes)
    for (const index of done) doneMark.copy(copy, read.lines[index]?.offset)
    const lines = read.lines.filter((_line, index) => !done.includes(index))
    expect(contentOf(copy, expected)).toEqual({ damagedAt: [], lines })
  }
})

test.each([4, 7])('a line of another file, with id %i, is damage', (id) => {
  const read = contentOf(lineOf(id, '[]'), { id: 5, count: 2, bytes: 100 })
  expect(read).toEqual({ lines: [], damagedAt: [1] })
})

test('an entry that became line breaks is damage, reported where the next entry begins', () => {
  const [lost, whole] = [lineOf(5, '[]'), lineOf(6, '[]')]
  const bytes = Buffer.concat([lost.fill('\n'), whole])
  const read = contentOf(bytes, { id: 5, count: 2, bytes: bytes.length })
  expect(read).toMatchObject({ lines: [{ id: 6 }], damagedAt: [lost.length + 1] })
})

/** What a disk does: it changes bytes from a place on. */
const damage = fc.record({
  kind: fc.constantFrom('flip', 'zeros', 'blank', 'noise', 'cut', 'duplicate'),
  at: fc.nat({ max: 10_000 }),
  length: fc.integer({ min: 1, max: 300 }),
  noise: fc.uint8Array({ minLength: 300, maxLength: 300 }),
})

test('with any damage no text is altered, each whole entry is read, and the damage is reported', () => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue(), { minLength: 1, maxLength: 20 }),
      damage,
      (values, { kind, at, length, noise }) => {
        const texts = values.map((value) => JSON.stringify(value))
        const lines = texts.map((text, index) => lineOf(100 + index, text))
        const whole = Buffer.concat(lines)
        const start = at % whole.length
        const end = Math.min(start + length, whole.length)
        let bytes = Buffer.from(whole)
        if (kind === 'flip') bytes[start] = (bytes[start] ?? 0) ^ (1 << (length % 8))
        if (kind === 'zeros') bytes.fill(0, start, end)
        if (kind === 'blank') bytes.fill('\n', start, end)
        if (kind === 'noise') bytes.set(noise.subarray(0, end - start), start)
        if (kind === 'cut') bytes = bytes.subarray(0, start)
        if (kind === 'duplicate') whole.copy(bytes, start, 0, end - start)
        const { lines: read, damagedAt } = contentOf(bytes, {
          id: 100,
          count: texts.length,
          bytes: whole.length,
        })
        for (const { id, text } of read) expect(text).toBe(texts[id - 100])
        expect(new Set(read.map(({ id }) => id)).size).toBe(read.length)
        let offset = 0
        for (const [index, line] of lines.entries()) {
          const isWhole = bytes.subarray(offset, offset + line.length).equals(line)
          if (isWhole) expect(read.map(({ id }) => id)).toContain(100 + index)
          offset += line.length
        }
        expect(damagedAt.length > 0).toBe(!bytes.equals(whole))
      },
    ),
    { numRuns: 2_000 },
  )
})
