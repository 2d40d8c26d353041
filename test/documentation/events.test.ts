/** docs/observability.md against the code: every event with its level and its fields. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { root } from './code-blocks.js'

const levels = new Set(['debug', 'info', 'warn', 'error'])

interface Line {
  readonly event: string
  readonly level: string
  /** The fields that stand at the call; a spread may bring more. */
  readonly fields: readonly string[]
  readonly hasSpread: boolean
}

/** The calls in `src` that log an object with an `event`. */
function loggedLines(): Line[] {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  return files
    .filter((file) => /\.ts$/.test(file) && !file.startsWith('cli/') && file !== 'logger.ts')
    .flatMap((file) => {
      const text = readFileSync(join(root, 'src', file), 'utf8')
      const lines: Line[] = []
      visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true))
      return lines

      function visit(node: ts.Node): void {
        if (ts.isCallExpression(node)) lines.push(...linesOf(node))
        ts.forEachChild(node, visit)
      }
    })
}

function linesOf(call: ts.CallExpression): Line[] {
  const [first, fields, message] = call.arguments
  if (first === undefined || message === undefined || fields === undefined) return []
  // Logs the error of a user's function, with these fields.
  const isCallLogged = call.expression.getText() === 'callLogged'
  const level = isCallLogged ? 'error' : ts.isStringLiteral(first) ? first.text : ''
  if (!levels.has(level)) return []
  const literal = literalOf(fields)
  const event = literal?.properties.find((property) => nameOf(property) === 'event')
  if (literal === undefined || event === undefined || !ts.isPropertyAssignment(event)) {
    throw new Error(`A log line has no literal event: ${call.getText()}`)
  }
  const names = literal.properties.map(nameOf)
  return [
    {
      event: event.initializer.getText().replaceAll("'", ''),
      level,
      fields: [
        ...names.filter((name) => name !== undefined && name !== 'event').map(String),
        ...(isCallLogged ? ['err'] : []),
      ],
      hasSpread: names.includes(undefined),
    },
  ]
}

/** The object literal at a call, or the one that the variable there was declared with in the same block. */
function literalOf(node: ts.Node): ts.ObjectLiteralExpression | undefined {
  if (ts.isObjectLiteralExpression(node)) return node
  if (!ts.isIdentifier(node)) return undefined
  for (let scope = node.parent; scope !== undefined; scope = scope.parent) {
    if (!ts.isBlock(scope)) continue
    for (const statement of scope.statements.filter(ts.isVariableStatement)) {
      const declared = statement.declarationList.declarations.find(({ name }) => name.getText() === node.text)
      if (declared?.initializer && ts.isObjectLiteralExpression(declared.initializer))
        return declared.initializer
    }
  }
  return undefined
}

function nameOf(property: ts.ObjectLiteralElementLike): string | undefined {
  return property.name !== undefined && ts.isIdentifier(property.name) ? property.name.text : undefined
}

/** The rows of the tables of events: `| \`event\` | level | \`field\`, \`field\` | … |`. */
function documentedLines(): { event: string; level: string; fields: string[] }[] {
  const page = readFileSync(join(root, 'docs/observability.md'), 'utf8')
  return [...page.matchAll(/^\| `([a-z.-]+)` \| (\w+) \|([^|]*)\|/gm)].map(
    ([, event = '', level = '', fields = '']) => ({
      event,
      level,
      fields: [...fields.matchAll(/`(\w+)`/g)].map(([, field = '']) => field),
    }),
  )
}

const logged = loggedLines()
const documented = documentedLines()

test('the page lists every event with its level, and no other', () => {
  const nameAndLevel = ({ event, level }: { event: string; level: string }) => `${event} ${level}`
  expect(new Set(documented.map(nameAndLevel))).toEqual(new Set(logged.map(nameAndLevel)))
  expect(documented.length).toBe(new Set(documented.map(({ event }) => event)).size)
})

test.each(logged)('the page lists the fields of $event', ({ event, fields, hasSpread }) => {
  const row = documented.find((line) => line.event === event)
  expect(row?.fields ?? []).toEqual(expect.arrayContaining([...fields]))
  if (!hasSpread && logged.filter((line) => line.event === event).length === 1) {
    expect([...(row?.fields ?? [])].sort()).toEqual([...fields].sort())
  }
})
