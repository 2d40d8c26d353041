import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { isBusy, isOutcomeOpen, isSuccess } from '../../src/shared/statuses.js'

test.each([
  [200, 'success'],
  [299, 'success'],
  [300, 'no effect'],
  [408, 'busy and open'],
  [409, 'no effect'],
  [425, 'busy'],
  [429, 'busy'],
  [499, 'no effect'],
  [500, 'open'],
  [501, 'no effect'],
  [502, 'open'],
  [503, 'busy and open'],
  [504, 'open'],
  [505, 'no effect'],
  [507, 'open'],
  [511, 'no effect'],
  [520, 'open'],
  [599, 'open'],
])('the status %i: %s', (status, meaning) => {
  const meanings = [isSuccess(status) && 'success', isBusy(status) && 'busy', isOutcomeOpen(status) && 'open']
  expect(meanings.filter(Boolean).join(' and ') || 'no effect').toBe(meaning)
})

/** A comparison of a status with a number, a list of statuses that is searched, or a `case`. */
const comparison = /status(?:Code)?\)? *(?:[!=]==|[<>]=?) *\d{3}\b|\[[\d, ]*\d{3}\]\.includes|\bcase \d{3}:/gi

test('no other file compares a status with a number', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.tsx?$/.test(name),
  )
  const found = files.filter((name) => readFileSync(`src/${name}`, 'utf8').search(comparison) !== -1)

  expect(found).toEqual(['shared/statuses.ts'])
})
