/** The rules of examples/alert-rules.yml, against the metrics of the example and the keeper's codes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import * as z from 'zod'
import { root } from './code-blocks.js'

const ruleSchema = z.strictObject({
  alert: z.string().regex(/^[A-Z][A-Za-z]+$/),
  expr: z.string(),
  for: z
    .string()
    .regex(/^\d+[smh]$/)
    .optional(),
  annotations: z.strictObject({ summary: z.string().regex(/\.$/) }),
})
const fileSchema = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), rules: z.array(ruleSchema) })),
})

const { groups } = fileSchema.parse(parse(readFileSync(join(root, 'examples/alert-rules.yml'), 'utf8')))
const rules = groups.flatMap((group) => group.rules)
const page = readFileSync(join(root, 'docs/observability.md'), 'utf8')

/** Every `metric{label="value"}` of the rules; a value may be a pattern of several. */
const selectors = rules.flatMap(({ expr }) =>
  [...expr.matchAll(/(notification_\w+)(?:\{(\w+)=~?"([^"]+)"\})?/g)].map(
    ([, metric = '', label, values]) => ({ metric, label, values: values?.split('|') ?? [] }),
  ),
)

test('the rules ask for metrics and labels of the example, as the table of the page names them', () => {
  const example = readFileSync(join(root, 'examples/metrics-prometheus.mts'), 'utf8')
  const metrics = new Map(
    [...example.matchAll(/name: '(\w+)',\n {2}help: .*\n(?: {2}labelNames: \[(.*)\])?/g)].map(
      ([, name = '', labels = '']) => [name, [...labels.matchAll(/'(\w+)'/g)].map(([, label]) => label)],
    ),
  )
  expect(metrics.size).toBe(5)
  for (const { metric, label } of selectors) {
    expect([...metrics.keys()]).toContain(metric)
    if (label !== undefined) expect(metrics.get(metric)).toContain(label)
  }
  for (const [metric, labels] of metrics) {
    const cells = labels.map((label) => `\`${label}\``).join(', ')
    expect(page).toContain(`| \`${metric}\` | ${cells}${cells && ' '}|`)
  }
})

test('there is a rule for each problem code of the keeper, and for no other', () => {
  const codes = selectors.filter(({ label }) => label === 'code').flatMap(({ values }) => values)
  expect(codes.sort()).toEqual(problemCodes().sort())
})

test('the events of the rules are in the tables of events', () => {
  const events = selectors.filter(({ label }) => label === 'event').flatMap(({ values }) => values)
  expect(events.length).toBeGreaterThan(3)
  for (const event of events) expect(page).toContain(`| \`${event}\` |`)
})

/** The members of the union `KeeperProblemCode`. */
function problemCodes(): string[] {
  const file = join(root, 'src/keeper/types.ts')
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
  const union = source.statements
    .filter(ts.isTypeAliasDeclaration)
    .find(({ name }) => name.text === 'KeeperProblemCode')?.type
  if (union === undefined || !ts.isUnionTypeNode(union)) throw new Error('KeeperProblemCode is no union')
  return union.types.map((member) => member.getText().replaceAll("'", ''))
}

/** What the example counts from 0. */
const countedFromZero = [
  ...(
    /const counted = \[([^\]]*)\]/.exec(
      readFileSync(join(root, 'examples/metrics-prometheus.mts'), 'utf8'),
    )?.[1] ?? ''
  ).matchAll(/'([\w.-]+)'/g),
].map(([, event = '']) => event)

test('the example begins every event that a rule counts at 0', () => {
  const events = selectors.filter(({ label }) => label === 'event').flatMap(({ values }) => values)
  expect(countedFromZero).toEqual(expect.arrayContaining(events))
})
