/** What zod finds wrong in the words of this package: each is the rest of a sentence that begins with the place. */
import type * as z from 'zod'
import { excerpt } from './excerpt.js'
import { didYouMean } from './nearest-name.js'

type RawIssue = z.core.$ZodRawIssue
type IssueOf<Code> = Extract<RawIssue, { code: Code }>
type Limit = Pick<z.core.$ZodIssueTooSmall, 'origin' | 'inclusive' | 'exact'>

/**
 * What every check passes to zod. A message in the schema itself comes first, then the words of this module, and zod's
 * own where this module has none. Inputs are looked at, to tell what is missing, and never shown: they may be secrets.
 */
export const inOurWords = { error: wordingOf, reportInput: true } as const

/** What zod's names of types are called here, with an article. */
const kinds: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'an integer',
  bigint: 'a bigint',
  boolean: 'a boolean',
  object: 'an object',
  record: 'an object',
  array: 'a list',
  function: 'a function',
  symbol: 'a symbol',
}

/** What a limit counts, by the type that it limits; the limits of a number have no unit. */
const units: Readonly<Record<string, string>> = { string: 'characters', array: 'entries' }

function wordingOf(issue: RawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return wrongType(issue)
    case 'invalid_value':
      return `must be ${oneOf(issue.values.map((value) => code(String(value))))}`
    case 'too_small':
      if (issue.origin === 'string' && issue.minimum === 1) return 'must not be empty'
      return limited(issue, issue.inclusive ? 'at least' : 'more than', issue.minimum)
    case 'too_big':
      return limited(issue, issue.inclusive ? 'at most' : 'less than', issue.maximum)
    case 'unrecognized_keys':
      return unknownNames(issue)
    default:
      return undefined
  }
}

function wrongType({ expected, input, path = [] }: IssueOf<'invalid_type'>): string {
  const wanted = kinds[expected] ?? expected
  // Here the input is a number of another kind: one with a fraction, NaN, or an infinite one.
  if (typeof input === 'number' && expected === 'int') return 'must be an integer'
  if (typeof input === 'number' && expected === 'number') return 'must be a finite number'
  if (path.length === 0) return `${wanted} is needed, not ${kindOf(input)}`
  return `must be ${wanted}${input === undefined ? '' : `, not ${kindOf(input)}`}`
}

function kindOf(input: unknown): string {
  if (input === null) return 'null'
  const type = Array.isArray(input) ? 'array' : typeof input
  return kinds[type] ?? type
}

function limited({ origin, exact }: Limit, comparison: string, limit: number | bigint): string {
  const unit = units[origin]
  const amount = `${exact ? 'exactly' : comparison} ${limit}`
  return unit === undefined ? `must be ${amount}` : `must have ${amount} ${unit}`
}

/** Names that a schema does not know, each with the nearest known one; where none is near, all known ones are listed. */
function unknownNames({ keys, inst, path = [] }: IssueOf<'unrecognized_keys'>): string {
  const { shape = {} }: { shape?: object } = Object(inst?._zod.def)
  const known = Object.keys(shape)
  const found = keys.map((key) => {
    const name = excerpt(key, 100)
    return { name, advice: didYouMean(name, known, code) }
  })
  const names = found.map(({ name, advice }) => code(name) + advice)
  const isListNeeded = known.length > 0 && found.some(({ advice }) => advice === '')
  const list = isListNeeded ? `, only ${known.map(code).join(', ')}` : ''
  return `${path.length === 0 ? 'there is' : 'has'} no ${names.join(', no ')}${list}`
}

function code(name: string): string {
  return `\`${name}\``
}

function oneOf(names: readonly string[]): string {
  return names.length > 1 ? `${names.slice(0, -1).join(', ')} or ${names.at(-1)}` : `${names[0]}`
}
