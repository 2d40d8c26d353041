/** A time limit for a function of the user's, which may ignore that it is over. */

/**
 * Calls a function with a signal, and settles as it does.
 *
 * @throws what `ending` is aborted with, or a `TimeoutError` of the platform after `limitMs`; the signal is aborted
 * with the same.
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
  // Also where the function throws at once, and nobody waits for it.
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
