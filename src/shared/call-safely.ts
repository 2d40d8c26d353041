/** Calls functions of a user's, so that what they throw or reject with breaks nothing here. */

/**
 * Calls a function at once, and resolves when what the function returned is settled. What it throws or rejects with
 * goes to `onFailure`, whose result is awaited, too. Never rejects, unless `onFailure` fails.
 */
export async function callSafely(call: () => unknown, onFailure: (error: unknown) => unknown): Promise<void> {
  try {
    await call()
  } catch (error) {
    await onFailure(error)
  }
}
