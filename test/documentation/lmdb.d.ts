/** What docs/stores.md uses of lmdb, which only the consumers' tests install. */
declare module 'lmdb' {
  export function open<Value, Key>(options: {
    path: string
    encoding?: string
  }): {
    get(key: Key): Value | undefined
    put(key: Key, value: Value): Promise<boolean>
    putSync(key: Key, value: Value): void
    remove(key: Key): Promise<boolean>
    transactionSync<T>(run: () => T): T
    close(): Promise<void>
  }
}
