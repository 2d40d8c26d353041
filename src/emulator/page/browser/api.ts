/** Asks the emulator to do something. */

/** Resolves with the answer. Rejects with an `Error` whose message is fit to be shown. */
export async function post<Answer extends object>(action: string, body: object): Promise<Answer> {
  let response: Response
  try {
    response = await fetch(`api/${action}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  } catch {
    throw new Error('The emulator does not answer. Is it still running?')
  }
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.message)
  return answer
}

/** What {@link post} rejected with, in words. */
export function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
