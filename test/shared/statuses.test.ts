/** What each status means for a call: test/messages/answers.txt. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** A comparison of a status with a number, a list of statuses that is searched, or a `case`. */
const comparison = /status(?:Code)?\)? *(?:[!=]==|[<>]=?) *\d{3}\b|\[[\d, ]*\d{3}\]\.includes|\bcase \d{3}:/gi

test('no other file compares a status with a number', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\.tsx?$/.test(name),
  )
  const found = files.filter((name) => readFileSync(`src/${name}`, 'utf8').search(comparison) !== -1)

  expect(found).toEqual(['shared/statuses.ts'])
})
