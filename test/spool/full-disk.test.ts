/** Disks that are full in earnest: needs the right to mount. */
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { callBack, keep, never, numbered, openSpool, recorder, spoolFolder, until } from './support.js'

const run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: 'ignore' })

/** Mounts a small volume of the kind on a path. */
const volumes = {
  tmpfs: (path: string) => run('mount', '-t', 'tmpfs', '-o', 'size=6m,mode=0700', 'tmpfs', path),
  ext4: (path: string) => {
    run('truncate', '--size=12M', `${path}.img`)
    run('mkfs.ext4', '-q', '-m', '0', `${path}.img`)
    run('mount', '-o', 'loop', `${path}.img`, path)
  },
}

describe.each(Object.entries(volumes))('%s that is full', (_kind, mountOn) => {
  test('ends no subscription: 204 and a report; delivery, repetition and dead letters continue; space is free again', async ({
    skip,
  }) => {
    await using folder = await spoolFolder()
    const volume = join(folder.path, 'small')
    await mkdir(volume, { recursive: true })
    try {
      mountOn(volume)
    } catch {
      skip('it needs mkfs.ext4 and the right to mount')
    }
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const path = join(volume, 'spool')
    try {
      const first = await openSpool({ path, deliver: never })
      const errors: unknown[] = []
      let id = 0
      const send = async (count: number) => {
        const body = () => JSON.stringify(numbered(id++, { text: 'x'.repeat(10_000) }))
        const onError = (error: unknown) => errors.push(error)
        const answers = Array.from({ length: count }, () => callBack(first, body(), { onError }))
        for (const status of await Promise.all(answers)) expect(status).toBe(204)
      }
      // One at a time and many at a time, until several were not kept.
      for (let round = 0; round < 120; round += 1) await send(round % 2 ? 1 : 20)
      const kept = first.size
      expect(kept).toBeGreaterThan(50)
      expect(errors).toHaveLength(id - kept)
      for (const error of errors) expect(error).toMatchObject({ name: 'SpoolError' })
      expect(await first.close({ timeoutMs: 0 })).toBe(kept)
      // Whatever room is left goes to others.
      await writeFile(join(volume, 'other'), Buffer.alloc(12 * 2 ** 20)).catch(() => {})

      // A start on a full disk. Some deliveries fail once.
      const tried = new Set<string>()
      const { deliver, delivered } = recorder(({ notification: { id } }) => {
        const isRepeated = tried.size === tried.add(id).size
        if (!isRepeated && id.endsWith('1')) throw new Error('away')
      })
      const second = await openSpool({ path, deliver, concurrency: 100 })
      expect(second.size).toBe(kept)
      await until(() => second.size === 0)
      expect(tried.size).toBe(kept)
      const repeated = [...tried].filter((id) => id.endsWith('1'))
      expect(repeated.length).toBeGreaterThan(5)
      expect(delivered).toHaveLength(kept + repeated.length)
      await keep(second, numbered('after', { text: 'x'.repeat(10_000) }))
      await until(() => second.size === 0)
      await second.close()
      expect((await readdir(path)).filter((name) => !name.endsWith('.lock'))).toEqual([])
    } finally {
      run('umount', '-l', volume)
      vi.restoreAllMocks()
    }
  })
})
