/** Looks for secrets in everything that an error or a log line can show. */
import { inspect } from 'node:util'
import { expect } from 'vitest'

const clientSecret = 'c1ient-s3cret/+&='
const clientId = 'subscriber'
const username = 'basic-user'
const password = 'b4sic-p4ssword/"<>'
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** One of every kind, with characters that are escaped differently in JSON, forms, URLs and HTML. */
export const secrets = {
  clientSecret,
  accessToken: 'eyJhbGciOiJub25lIn0.eyJqdGkiOiI0NzExIn0.s1gnature-part',
  clientCredentials: base64(`${clientId}:${clientSecret}`),
  password,
  basicCredentials: base64(`${username}:${password}`),
  parameter: 'callb4ck/t0ken&"<5>+%',
  header: 'us3r-d4ta/"<7>&',
} as const

export const auth = {
  clientCredentials: { domain: 'acme', clientId, clientSecret },
  basic: { username, password },
  token: { getAccessToken: () => secrets.accessToken },
} as const

/** Fails if any of the secrets can be seen in what went wrong or in what was logged. */
export function expectNoSecretIn(...produced: readonly unknown[]): void {
  const shown = produced.map(everythingShownBy).join('\n')
  const seen = Object.entries(secrets).filter(([, secret]) =>
    spellings(secret).some((spelling) => shown.includes(spelling)),
  )
  expect(
    seen.map(([name]) => name),
    `secrets in ${shown.slice(0, 5_000)}`,
  ).toEqual([])
}

/** Every way in which a program might print a value, joined. */
export function everythingShownBy(value: unknown): string {
  const inspected = inspect(value, {
    depth: Number.POSITIVE_INFINITY,
    showHidden: true,
    getters: true,
    maxStringLength: null,
    maxArrayLength: null,
  })
  return [inspected, JSON.stringify(value), String(value), ...strings(value, new Set())].join('\n')
}

/** Every string in a value: symbols and hidden properties, prototypes' getters, maps, causes, bytes as text. */
function strings(value: unknown, seen: Set<unknown>): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'symbol') return [String(value)]
  if (value instanceof Uint8Array) return [Buffer.from(value).toString('latin1')]
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value))
    return []
  seen.add(value)
  const entries = value instanceof Map || value instanceof Set ? [...value.entries()].flat() : []
  const own = Reflect.ownKeys(value).flatMap((key) => [key, ownValue(value, key)])
  return [...entries, ...own].flatMap((part) => strings(part, seen))
}

function ownValue(value: object, key: PropertyKey): unknown {
  try {
    return Reflect.get(value, key)
  } catch {
    return undefined
  }
}

/** A secret as it stands, and as JSON, PHP's JSON, forms, URLs and base64 write it. */
export function spellings(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1)
  const form = new URLSearchParams([['', secret]]).toString().slice(1)
  const url = encodeURIComponent(secret)
  return [
    secret,
    json,
    json.replaceAll('/', '\\/'),
    form,
    url,
    url.replace(/%../g, (percentEncoded) => percentEncoded.toLowerCase()),
    json.replace(/[<>&]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`),
    secret.replace(/[^\w]/g, (char) => `&#x${char.charCodeAt(0).toString(16)};`),
    secret.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;'),
    Buffer.from(secret).toString('base64'),
    Buffer.from(secret).toString('base64url'),
    Buffer.from(secret).toString('hex').replace(/../g, '%$&'),
  ]
}
