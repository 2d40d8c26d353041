/** A time limit for a function of the user's, also for one that ignores its signal. */

/**
 * Calls a function with a signal, and settles as the function does.
 *
 * @throws the reason of `ending`, or after `limitMs` a `DOMException` named `TimeoutError`; the signal is aborted with
 * the same reason
 */
export async function withTimeLimit<T>(
  limitMs: number,
  ending: AbortSignal,
  call: (signal: AbortSignal) => T,
): Promise<Awaited<T>> {
  const controller = new AbortController()
  const { signal } = controller
  const over = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
  // If the function throws at once, nobody waits for `over`, and its rejection must not end the process.
  over.catch(() => {})
  const end = () => controller.abort(ending.reason)
  const timer = setTimeout(() => {
    controller.abort(new DOMException(`The call took longer than ${limitMs} ms.`, 'TimeoutError'))
  }, limitMs)
  ending.addEventListener('abort', end)
  try {
    return await Promise.race([call(signal), over])
  } finally {
    clearTimeout(timer)
    ending.removeEventListener('abort', end)
  }
}
