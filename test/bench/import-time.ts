/** How long importing takes in a process that has imported nothing yet. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { inTurns, type Settings } from './measure.js'
import { benchFolder, packageFolder } from './prepare.js'
import { type Aspect, comparisons, type Row, units } from './report.js'

const execute = promisify(execFile)

const importTime: Aspect<number> = { figureOf: (millis) => millis * 1e6, unit: units.duration }

const ours = 'notification-subscriber'
const peers = ['stripe', '@octokit/webhooks'] as const

export async function importRows({ rounds }: Settings): Promise<Row[]> {
  const settings = { rounds: Math.max(rounds * 2, 15), runMs: 0 }
  const measured = await inTurns(settings, [ours, ...peers], importMillis)
  return comparisons(`import '${ours}'`, { ...measured, ours: measured[ours] }, peers, [importTime])
}

async function importMillis(name: string): Promise<number> {
  const program = `
    const startedAt = performance.now()
    await import('${name}')
    process.stdout.write(String(performance.now() - startedAt))`
  const { stdout } = await execute(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: name === ours ? packageFolder : benchFolder,
    // Whatever makes this process run TypeScript has no place there.
    env: { PATH: process.env.PATH },
  })
  return Number(stdout)
}
