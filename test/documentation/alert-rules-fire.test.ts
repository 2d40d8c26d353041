/** Rule tests of examples/alert-rules.yml by `promtool`: each alert fires at the first failure, and not before. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import * as z from 'zod'
import { root } from './code-blocks.js'

const ruleSchema = z.object({ alert: z.string(), expr: z.string(), for: z.string().default('0s') })
const fileSchema = z.object({ groups: z.array(z.object({ rules: z.array(ruleSchema) })) })
const yaml = readFileSync(join(root, 'examples/alert-rules.yml'), 'utf8')
const rules = fileSchema.parse(parse(yaml)).groups.flatMap((group) => group.rules)

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
