/**
 * Measures the built package side by side with its peers, and prints tables. The peers have a
 * package.json of their own here, which `npm ci` of the package does not install; undici, zod and p-memoize
 * are the very copies that the package itself uses.
 *
 *   npm run bench                         everything
 *   npm run bench -- parse receive        these parts
 *   npm run bench -- --publish            everything, into docs/performance.md
 *   npm run bench -- --rounds 3 --quick   less exact, to see whether a change does anything
 */
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import type { Settings } from './measure.js'
import { buildPackage, installPeers } from './prepare.js'
import { publish } from './publish.js'
import { asMarkdown, type Row } from './report.js'

/** Loaded when the package is built and the peers are there. */
const parts: Readonly<Record<string, () => Promise<(settings: Settings) => Promise<Row[]>>>> = {
  'access-token': async () => (await import('./single.js')).accessTokenRows,
  create: async () => (await import('./create.js')).createRows,
  parse: async () => (await import('./single.js')).parseRows,
  receive: async () => (await import('./receive.js')).receiveRows,
  spool: async () => (await import('./spool.js')).spoolRows,
  import: async () => (await import('./import-time.js')).importRows,
  keeper: async () => (await import('./keeper.js')).keeperRows,
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    publish: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '9' },
  },
})
const unknown = positionals.filter((name) => !Object.hasOwn(parts, name))
if (unknown.length > 0) {
  throw new Error(`there is no part ${unknown.join(', ')}: choose of ${Object.keys(parts).join(', ')}`)
}

const rounds = Number(options.rounds)
if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number of at least 1')

const settings: Settings = {
  rounds,
  runMs: options.quick ? 200 : 1_000,
}
buildPackage()
installPeers()
const rows: Row[] = []
for (const name of positionals.length > 0 ? positionals : Object.keys(parts)) {
  console.error(`measuring ${name}`)
  const measure = await parts[name]?.()
  if (measure) rows.push(...(await measure(settings)))
}
const machine = `Node.js ${process.version}, ${cpus().length} × ${cpus()[0]?.model}`
console.log(`${asMarkdown(rows)}\n\n${machine}`)
if (options.publish) await publish(rows, machine, `npm run bench -- ${process.argv.slice(2).join(' ')}`)
