/** Run as a child process: counts a value up, together with others that do the same. */
import { openLmdbStore } from './lmdb-store.mjs'

const [path = '', key = '', steps] = process.argv.slice(2)
const { store, close } = openLmdbStore(path)
for (let done = 0; done < Number(steps); ) {
  const seen = await store.get(key)
  const before = typeof seen === 'string' ? seen : undefined
  if (await store.compareAndSet(key, before, String(Number(before ?? 0) + 1))) done += 1
}
await close()
