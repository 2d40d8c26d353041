/** One client that holds an access token, measured alone. */
import { OAuth2Client } from 'google-auth-library'
import { NotificationClient } from '../../../dist/index.js'
import { type Cost, costOf } from '../measure.js'
import { serve } from '../processes.js'

const accessToken = 'a'.repeat(800)
const lifetimeSeconds = 86_400

type GetToken = () => Promise<unknown>

export type TokenHolder = keyof typeof holders

/** Each gets its token the way it always does, from a server that is a function. */
const holders = {
  ours: async (): Promise<GetToken> => {
    const client = new NotificationClient({
      baseUrl: 'https://notifications.example.com',
      auth: {
        authUrl: 'https://auth.example.com',
        domain: 'acme',
        clientId: 'client',
        clientSecret: 'client-secret',
      },
      fetch: answerWithToken,
    })
    return () => client.getAccessToken()
  },
  'google-auth-library': async () => {
    const client = new OAuth2Client()
    client.refreshHandler = async () => ({
      access_token: accessToken,
      expiry_date: Date.now() + lifetimeSeconds * 1_000,
    })
    return () => client.getAccessToken()
  },
} as const satisfies Record<string, () => Promise<GetToken>>

async function answerWithToken(): Promise<Response> {
  return Response.json({ access_token: accessToken, token_type: 'Bearer', expires_in: lifetimeSeconds })
}

const getToken: GetToken = await holders[process.argv[2] as TokenHolder]()
if (!JSON.stringify(await getToken()).includes(accessToken)) throw new Error('this is not the token')

serve({ run: (runMs: number): Promise<Cost> => costOf(() => getTokenFor(runMs)) })

/** Looks at the clock only now and then, because that takes as long as getting the token. */
async function getTokenFor(runMs: number): Promise<number> {
  const endsAt = performance.now() + runMs
  let calls = 0
  while (performance.now() < endsAt) {
    for (let index = 0; index < 1_000; index++) await getToken()
    calls += 1_000
  }
  return calls
}
