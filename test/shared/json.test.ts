import { describe, expect, test } from 'vitest'
import { parseJson, parseJsonText } from '../../src/shared/json.js'

const nested = (depth: number, filling = '') => `${'['.repeat(depth)}"${filling}"${']'.repeat(depth)}`
const long = 'x'.repeat(5_000)

describe('a long JSON text', () => {
  test('is read if it is nested at most 1,000 deep', () => {
    expect(JSON.stringify(parseJsonText(nested(1_000, long)))).toBe(nested(1_000, long))
  })

  test('is refused if it is nested deeper', () => {
    expect(() => parseJsonText(nested(1_001, long))).toThrow(SyntaxError)
    expect(() => parseJsonText(`${'{"a":'.repeat(1_001)}1`)).toThrow('nested more than 1000 deep')
  })

  test.each([
    ['brackets in strings', `"${'['.repeat(5_000)}"`],
    ['brackets behind an escaped quote', `"${'\\"[{'.repeat(2_000)}"`],
    ['brackets behind an escaped backslash', `["\\\\",${nested(999, long)}]`],
    ['many brackets side by side', `[${'[],'.repeat(2_000)}{}]`],
  ])('may have %s', (_name, text) => {
    expect(parseJsonText(text)).toEqual(JSON.parse(text))
  })
})

test('the shortest text is refused from the same depth on', () => {
  const ofDepth = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  expect(parseJson(ofDepth(1_000))).toEqual(JSON.parse(ofDepth(1_000)))
  expect(() => parseJsonText(ofDepth(1_001))).toThrow('nested more than 1000 deep')
})

test.each(['', '{', 'undefined', '[1,]'])('what is not JSON has no value: %j', (text) => {
  expect(parseJson(text)).toBeUndefined()
  expect(() => parseJsonText(text)).toThrow(SyntaxError)
})
