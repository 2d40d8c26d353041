/** Signals that ask a command to end. */

const signals = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

/** npx forwards the signals of a terminal, so one Ctrl-C arrives twice: within this time both count as one. */
const sameSignalMs = 500

export interface Interruption {
  /** In words: `Ctrl-C`, or the name of the signal. */
  readonly by: string
  /** The exit code that shells use for this signal. */
  readonly exitCode: number
}

/** Calls back at the first signal; a second one ends the process at once. @returns a function that stops listening */
export function onInterruption(callback: (interruption: Interruption) => void): () => void {
  let firstSince: number | undefined
  const listener = (name: keyof typeof signals) => {
    const exitCode = 128 + signals[name]
    if (firstSince === undefined) {
      firstSince = performance.now()
      callback({ by: name === 'SIGINT' ? 'Ctrl-C' : name, exitCode })
    } else if (performance.now() - firstSince > sameSignalMs) {
      process.exit(exitCode)
    }
  }
  for (const name of Object.keys(signals)) process.on(name, listener)
  return () => {
    for (const name of Object.keys(signals)) process.off(name, listener)
  }
}

/** For a command that runs until something ends it: resolves with what that was, in words. */
export function untilInterrupted(): Promise<string> {
  return new Promise((resolve) => {
    onInterruption(({ by }) => resolve(by))
    // A reader such as `head` ended. Without this listener the next line would end the process at once.
    process.stdout.on('error', () => resolve('The output was closed'))
  })
}
