/** Messages for users, on pages that are read as a whole after a change: test/messages/. */
import { fileURLToPath } from 'node:url'
import { ConfigurationError, InvalidRequestError } from 'notification-subscriber'
import { expect } from 'vitest'

/** Node.js 24 and later add this to an error of TLS. */
const adviceOfNode = '; if the root CA is installed locally, try running Node.js with --use-system-ca'

/** Compares messages, by what causes them, with their page. `npx vitest run -u` accepts a change. */
export async function expectPage(page: string, messages: Readonly<Record<string, string>>): Promise<void> {
  const text = Object.entries(messages).map(
    ([cause, message]) => `${cause}\n  ${message.replaceAll(adviceOfNode, '')}\n`,
  )
  const file = fileURLToPath(new URL(`../messages/${page}.txt`, import.meta.url))
  await expect(text.join('\n')).toMatchFileSnapshot(file)
}

/** The issues of an error about input, each with its place. */
export function problemsIn(error: unknown): string {
  if (!(error instanceof ConfigurationError || error instanceof InvalidRequestError)) throw error
  return error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')
}

/** The places of what is wrong with options; none if they work. */
export function wrongPlaces(make: () => unknown): string[] {
  try {
    make()
    return []
  } catch (error) {
    if (error instanceof ConfigurationError) return error.issues.map(({ path }) => path.join('.'))
    throw error
  }
}
