import { expect, test } from 'vitest'
import { parseJson } from '../../src/shared/json.js'

test.each(['', '{', 'undefined', '[1,]'])('what is not JSON has no value: %j', (text) => {
  expect(parseJson(text)).toBeUndefined()
})
