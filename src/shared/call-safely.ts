/** Calls of a user's functions: what they throw or reject with never gets out. */

/**
 * Calls a function at once, and resolves when what it returned is settled. What it throws or rejects with goes to
 * `onFailure`, whose result is waited for, too. Never rejects, unless `onFailure` fails.
 */
export async function callSafely(call: () => unknown, onFailure: (error: unknown) => unknown): Promise<void> {
  try {
    await call()
  } catch (error) {
    await onFailure(error)
  }
}
