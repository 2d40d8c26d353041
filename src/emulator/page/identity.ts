/** Finds out whether a page is still served at its address: another program may have the port, and must not learn the secret path. */
import { createHmac, randomUUID } from 'node:crypto'
import { Agent, request } from 'undici'

export const challengePath = '/challenge/'

/** Proves that the one who answers knows the token, and shows nothing of it. */
export function answerToChallenge(token: string, challenge: string): string {
  return createHmac('sha256', token).update(challenge).digest('base64url')
}

/** What serves at the address of a page. Sends nothing of its path. */
export async function serverAt(pageUrl: string): Promise<'emulator' | 'other' | 'none'> {
  const { origin, pathname } = new URL(pageUrl)
  const challenge = randomUUID()
  const expected = answerToChallenge(pathname.slice(1, -1), challenge)
  const options = { dispatcher: new Agent(), signal: AbortSignal.timeout(5_000) }
  try {
    const { body } = await request(origin + challengePath + challenge, options)
    return (await body.text()) === expected ? 'emulator' : 'other'
  } catch (error) {
    return Object(error).code === 'ECONNREFUSED' ? 'none' : 'other'
  }
}
