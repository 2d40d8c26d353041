/** Loads undici at the first request: importing the package alone does not pay for it. */
import { ConfigurationError } from '../errors.js'
import { messageOf } from '../shared/excerpt.js'

/**
 * @throws `ConfigurationError` where undici cannot be loaded: a bundler that put it into an ES module took its
 * `require` away
 */
export async function loadUndici(): Promise<typeof import('undici')> {
  try {
    const undici = await import('undici')
    // A module that failed to load may be handed out half made at the second `import`.
    if (typeof undici.Agent === 'function') return undici
    throw new Error('it has no Agent')
  } catch (error) {
    const message =
      'is missing, and undici, which is used without one, cannot be loaded. ' +
      'If this code was bundled, leave `undici` external there; or give the client a `fetch`, such as `globalThis.fetch`'
    throw new ConfigurationError(
      `The client has nothing to send requests with: undici cannot be loaded (${messageOf(error)}). ` +
        'If this code was bundled, leave `undici` external there; or give the client a `fetch`, such as `globalThis.fetch`.',
      { issues: [{ path: ['dispatcher'], message }] },
      { cause: error },
    )
  }
}
