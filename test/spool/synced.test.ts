import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { spoolFolder } from './support.js'

const program = fileURLToPath(new URL('programs/keeps-numbers.ts', import.meta.url))

test('as the kernel sees it: line written, file synced, folder synced, and then a keep resolves', async ({
  skip,
}) => {
  skip(spawnSync('strace', ['-V']).error !== undefined, 'there is no strace')
  await using folder = await spoolFolder()
  // Two folders are made: each name has to be on the disk, too.
  const path = join(folder.path, 'below')
  const trace = `${folder.path}.trace`
  const calls = 'trace=openat,fsync,fdatasync,pwrite64,write'
  const args = [
    '-f',
    '-y',
    '-e',
    calls,
    '-o',
    trace,
    process.execPath,
    '--import',
    'tsx',
    program,
    path,
    '700',
  ]
  // A group of its own: strace does not pass on what ends itself.
  const child = spawn('strace', args, { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  await once(child.stdout, 'data')
  process.kill(-(child.pid ?? 0), 'SIGKILL')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  const text = await readFile(trace, 'utf8')
  const made = [dirname(folder.path), folder.path]
  for (const each of made) expect(text).toMatch(new RegExp(`fsync\\(\\d+<${each}>`))
  const answeredAt = text.search(/write\(1<[^>]*>, "700\\n"/)
  expect(answeredAt).toBeGreaterThan(0)
  const before = text.slice(text.indexOf('.open", O_RDWR|O_CREAT|O_EXCL'), answeredAt)
  const steps = [...before.matchAll(/\b(fsync|fdatasync|pwrite64)\b(?: resumed>)?.*\) += \d/g)].map(
    ([, call]) => call,
  )
  expect(steps.slice(0, 3)).toEqual(['pwrite64', 'fdatasync', 'fsync'])
})
