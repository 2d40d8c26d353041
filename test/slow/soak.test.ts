/** All parts in one process for minutes, while faults come and go: nothing grows. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

interface Sample {
  readonly heapBytes: number
  readonly handles: number
  readonly descriptors: number
  readonly delivered: number
  readonly restored: number
  readonly waiting: number
}

const minutes = Number(process.env.SOAK_MINUTES ?? 10)
const program = fileURLToPath(new URL('programs/soak.ts', import.meta.url))

// File descriptors are counted in /proc.
test.runIf(process.platform === 'linux')(
  `heap, handles and file descriptors stay flat for ${minutes} minutes`,
  async () => {
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      ['--expose-gc', '--import', 'tsx', program, String(minutes)],
      { timeout: (minutes + 2) * 60_000, maxBuffer: 16 * 2 ** 20 },
    )
    expect(stderr).toBe('')
    const samples: Sample[] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const third = Math.floor(samples.length / 3)
    const [early, late] = [samples.slice(third, 2 * third), samples.slice(-third)]
    const median = (list: readonly Sample[], value: keyof Sample) =>
      list.map((sample) => sample[value]).sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? Number.NaN
    const figures = Object.fromEntries(
      (['heapBytes', 'handles', 'descriptors'] as const).map((value) => [
        value,
        [median(samples.slice(0, third), value), median(early, value), median(late, value)],
      ]),
    )
    console.log(JSON.stringify({ minutes, ...figures, last: samples.at(-1) }))

    expect(median(late, 'heapBytes')).toBeLessThan(median(early, 'heapBytes') * 1.1 + 2 ** 20)
    expect(median(late, 'handles')).toBeLessThanOrEqual(median(early, 'handles') + 5)
    expect(median(late, 'descriptors')).toBeLessThanOrEqual(median(early, 'descriptors') + 5)
    const last = samples.at(-1)
    expect(last?.delivered).toBeGreaterThan(minutes * 500)
    expect(last?.restored).toBeGreaterThan(0)
  },
  (minutes + 3) * 60_000,
)
