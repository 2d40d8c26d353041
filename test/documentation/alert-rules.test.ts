/**
 * The rules of examples/alert-rules.yml fit the metrics of the example and the keeper's codes, and each alert fires at the
 * first failure, and not before (`promtool`; without it these tests are skipped).
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ts from 'typescript'
import { afterAll, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import * as z from 'zod'
import { root } from './code-blocks.js'

const ruleSchema = z.strictObject({
  alert: z.string().regex(/^[A-Z][A-Za-z]+$/),
  expr: z.string(),
  for: z
    .string()
    .regex(/^\d+[smh]$/)
    .default('0s'),
  annotations: z.strictObject({ summary: z.string().regex(/\.$/) }),
})
const fileSchema = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), rules: z.array(ruleSchema) })),
})

const { groups } = fileSchema.parse(parse(readFileSync(join(root, 'examples/alert-rules.yml'), 'utf8')))
const rules = groups.flatMap((group) => group.rules)
const page = readFileSync(join(root, 'docs/observability.md'), 'utf8')
const example = readFileSync(join(root, 'examples/metrics-prometheus.mts'), 'utf8')

/** Every `metric{label="value"}` of the rules; a value may be a pattern of several. */
const selectors = rules.flatMap(({ expr }) =>
  [...expr.matchAll(/(notification_\w+)(?:\{(\w+)=~?"([^"]+)"\})?/g)].map(
    ([, metric = '', label, values]) => ({ metric, label, values: values?.split('|') ?? [] }),
  ),
)

test('the rules ask for metrics and labels of the example, as the table of the page names them', () => {
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

const askedFor = (label: string) =>
  selectors.filter((selector) => selector.label === label).flatMap(({ values }) => values)

test('there is a rule for each problem code of the keeper, and for no other', () => {
  expect(askedFor('code').sort()).toEqual(problemCodes().sort())
})

test('the events of the rules are in the tables of events', () => {
  const events = askedFor('event')
  expect(events.length).toBeGreaterThan(3)
  for (const event of events) expect(page).toContain(`| \`${event}\` |`)
})

function problemCodes(): string[] {
  const file = join(root, 'src/keeper/types.ts')
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
  const union = source.statements
    .filter(ts.isTypeAliasDeclaration)
    .find(({ name }) => name.text === 'KeeperProblemCode')?.type
  if (union === undefined || !ts.isUnionTypeNode(union)) throw new Error('KeeperProblemCode is no union')
  return union.types.map((member) => member.getText().replaceAll("'", ''))
}

test('the example begins every event that a rule counts at 0', () => {
  const [, list = ''] = /const counted = \[([^\]]*)\]/.exec(example) ?? []
  const counted = [...list.matchAll(/'([\w.-]+)'/g)].map(([, event]) => event)
  expect(counted).toEqual(expect.arrayContaining(askedFor('event')))
})

const isInstalled = spawnSync('promtool', ['--version']).status === 0
const folder = mkdtempSync(join(tmpdir(), 'alert-rules-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A selector of a rule; of a pattern the last value. */
function seriesOf(expr: string): string {
  const [, metric, label, values] = /(notification_\w+)(?:\{(\w+)=~?"([^"]+)"\})?/.exec(expr) ?? []
  return label === undefined ? `${metric}` : `${metric}{${label}="${values?.split('|').at(-1)}"}`
}

/** What the series are for 20 minutes before a failure, each minute a sample, and for 20 minutes after. */
function samplesOf(expr: string): { well: string; failed: string } {
  const limit = Number(/\d+$/.exec(expr)?.[0])
  // A counter from 0 that goes up once, by as much as the rule allows and one more.
  if (expr.includes('increase(')) return { well: '0x40', failed: `0x20 ${limit + 1}x20` }
  // A problem is a series of its own, which is not there while all is well.
  if (expr.endsWith('== 1')) return { well: '_x40', failed: '_x20 1x20' }
  return { well: `${limit}x40`, failed: `${limit}x20 ${limit + 1}x20` }
}

function testOf({ alert, expr, for: wait }: z.infer<typeof ruleSchema>, samples: string, fires: boolean) {
  const minutes = Number.parseInt(wait, 10) * (wait.endsWith('h') ? 60 : 1)
  const alerts = (at: number, isFiring: boolean) => ({
    eval_time: `${at}m`,
    alertname: alert,
    exp_alerts: isFiring ? [{}] : [],
  })
  return {
    interval: '1m',
    input_series: [
      { series: seriesOf(expr), values: `${samples} ${fires ? samples.split(' ').at(-1) : '_x20'}` },
    ],
    alert_rule_test: [alerts(19, false), alerts(22 + (wait.endsWith('s') ? 0 : minutes), fires)],
  }
}

test.skipIf(!isInstalled).each(rules)('$alert: the first failure fires, and nothing else does', (rule) => {
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const { well, failed } = samplesOf(rule.expr)
  // Without annotations, which promtool compares word by word.
  const groups = [{ name: 'rules', rules: [{ alert: rule.alert, expr: rule.expr, for: rule.for }] }]
  file('rules.yml', stringify({ groups }))
  const tests = [testOf(rule, well, false), testOf(rule, failed, true)]
  const testFile = file(
    'tests.yml',
    stringify({ rule_files: ['rules.yml'], evaluation_interval: '1m', tests }),
  )
  const run = () => execFileSync('promtool', ['test', 'rules', testFile], { encoding: 'utf8', stdio: 'pipe' })
  expect(run).not.toThrow()
})
