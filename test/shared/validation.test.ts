/** The wording itself is reviewed as a whole: test/messages. */
import { ConfigurationError } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { formatIssues, validate } from '../../src/shared/validation.js'

const refuse = (schema: z.ZodType, value: unknown) => {
  try {
    validate(schema, value, (issues) => new ConfigurationError(formatIssues(issues), { issues }))
  } catch (error) {
    return error as ConfigurationError
  }
  return expect.fail('should have been refused')
}

test('issues have paths and words, and no values', () => {
  const error = refuse(z.strictObject({ port: z.int(), host: z.string() }), { port: 'pa55word' })
  expect(error.issues.map(({ path }) => path)).toEqual([['port'], ['host']])
  expect(JSON.stringify(error)).not.toContain('pa55word')
})

describe('text is bounded', () => {
  test('in how much of a path and a message it shows', () => {
    expect(formatIssues([{ path: ['a'.repeat(10_000)], message: 'b'.repeat(10_000) }]).length).toBeLessThan(
      700,
    )
  })

  test('in how many unknown names it shows', () => {
    const unknown = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`prot${index}`, 1]))
    const [issue] = refuse(z.strictObject({ port: z.int().optional() }), unknown).issues
    expect(issue?.message.match(/prot/g)).toHaveLength(5)
    expect(issue?.message).toContain('995 more')
  })
})
