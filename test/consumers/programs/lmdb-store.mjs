/** The store of docs/stores.md, "lmdb, on one machine", to the letter. */
import { open } from 'lmdb'

export function openLmdbStore(path) {
  const db = open({ path })
  const store = {
    get: (key) => db.get(key),
    set: (key, value) => db.put(key, value),
    delete: (key) => db.remove(key),
    compareAndSet: (key, expected, value) =>
      // Not `transaction`: with several processes on one file it was seen to wait for ever.
      db.transactionSync(() => {
        if (db.get(key) !== expected) return false
        db.putSync(key, value)
        return true
      }),
  }
  return { store, close: () => db.close() }
}
