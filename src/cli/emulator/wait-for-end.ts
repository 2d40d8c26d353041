/** Waits until the process is told to end, by a key, by another process, or by a reader that went away. */

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Resolves with the reason to end, in words. A second signal ends the process at once. */
export function waitForEnd(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of signals) {
      process.once(signal, () => {
        resolve(signal === 'SIGINT' ? 'Ctrl-C' : signal)
        for (const again of signals) process.once(again, () => process.exit(130))
      })
    }
    // A reader such as `head` that has enough: without this the first line after it would end the process in disorder.
    process.stdout.on('error', () => resolve('Nobody reads'))
  })
}
