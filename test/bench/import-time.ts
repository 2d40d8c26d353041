/** How long importing takes in a process that has imported nothing yet. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { inTurns, type Settings } from './measure.js'
import { benchFolder, packageFolder } from './prepare.js'
import { type Aspect, comparisons, type Row, units } from './report.js'

const execute = promisify(execFile)

const importTime: Aspect<number> = { figureOf: (millis) => millis * 1e6, unit: units.duration, isTime: true }

/** Under the names that users import. */
const entryPoints: Readonly<Record<string, readonly string[]>> = {
  'notification-subscriber': ['stripe', 'openai', '@octokit/webhooks', '@twurple/eventsub-http'],
  'notification-subscriber/webhooks': ['@octokit/webhooks'],
}

export async function importRows({ rounds }: Settings): Promise<Row[]> {
  const names = [...new Set(Object.entries(entryPoints).flatMap(([name, peers]) => [name, ...peers]))]
  const measured = await inTurns({ rounds: Math.max(rounds * 2, 15), runMs: 0 }, names, importMillis)
  return Object.entries(entryPoints).flatMap(([name, peers]) =>
    comparisons(`import '${name}'`, { ...measured, ours: measured[name] ?? [] }, peers, [importTime]),
  )
}

async function importMillis(name: string): Promise<number> {
  const program = `
    const startedAt = performance.now()
    await import('${name}')
    process.stdout.write(String(performance.now() - startedAt))`
  const { stdout } = await execute(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: name in entryPoints ? packageFolder : benchFolder,
    // Whatever makes this process run TypeScript has no place there.
    env: { PATH: process.env.PATH },
  })
  return Number(stdout)
}
