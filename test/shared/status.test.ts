import { expect, test } from 'vitest'
import { isOutcomeOpen, isSuccess, isTurnedAway } from '../../src/shared/status.js'

test.each([
  [200, 'success'],
  [299, 'success'],
  [300, 'no effect'],
  [409, 'no effect'],
  [429, 'turned away'],
  [499, 'no effect'],
  [500, 'open'],
  [501, 'no effect'],
  [502, 'open'],
  [503, 'turned away'],
  [504, 'open'],
  [505, 'no effect'],
  [507, 'open'],
  [511, 'no effect'],
  [520, 'open'],
  [599, 'open'],
])('%i: %s', (status, meaning) => {
  const meanings = [
    isSuccess(status) && 'success',
    isTurnedAway(status) && 'turned away',
    isOutcomeOpen(status) && 'open',
  ]
  expect(meanings.filter(Boolean)).toEqual(meaning === 'no effect' ? [] : [meaning])
})
