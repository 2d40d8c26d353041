/** Who serves at the address of a page: its path is a secret, and another program may have the port now. */
import { createHmac, randomBytes } from 'node:crypto'
import { get } from 'node:http'

export const challengePath = '/challenge/'

/** Proves that the one who answers knows the token, and shows nothing of it. */
export function answerToChallenge(token: string, challenge: string): string {
  return createHmac('sha256', token).update(challenge).digest('base64url')
}

/** Whether the page of this address is served there: `false` for a foreign server and for none. Sends nothing of the path. */
export function isServed(pageUrl: string): Promise<boolean> {
  const { origin, pathname } = new URL(pageUrl)
  const challenge = randomBytes(18).toString('base64url')
  const expected = answerToChallenge(pathname.slice(1, -1), challenge)
  return new Promise((resolve) => {
    const request = get(origin + challengePath + challenge, { timeout: 5_000 }, async (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (piece) => {
        text += piece
        if (text.length > expected.length) request.destroy()
      })
      response.on('close', () => resolve(text === expected))
    })
    request.on('timeout', () => request.destroy()).on('error', () => resolve(false))
  })
}
