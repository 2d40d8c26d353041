/** What the keeper's stored values say, as far as the model reads them. */

/** The record of a user. */
export interface StoredRecord {
  readonly username: string
  readonly subscriptions: readonly {
    readonly id?: number
    readonly isOutcomeUnknown?: boolean
    readonly parameterNames?: readonly string[]
  }[]
  /** Written before each request: which call is about to be sent. */
  readonly claim?: { readonly by: string; readonly nonce: string; readonly call: string }
  readonly isRemoved?: boolean
}

/** @returns `undefined` for a value that is not the record of a user */
export function recordIn(text: string): StoredRecord | undefined {
  if (!text.includes('"username"')) return undefined
  if (parsed.has(text)) return parsed.get(text)
  const record = parse(text)
  if (parsed.size >= mostParsed) parsed.clear()
  parsed.set(text, record)
  return record
}

export function idsIn(text: string): readonly number[] {
  const subscriptions = recordIn(text)?.subscriptions ?? []
  return subscriptions.flatMap(({ id }) => (id === undefined ? [] : [id]))
}

/** Names of the parameters and headers that a user's subscriptions may have. */
export function parameterNamesIn({ subscriptions }: StoredRecord): readonly string[] {
  return subscriptions.flatMap(({ parameterNames = [] }) => parameterNames)
}

/** Whether the record says that a subscription may exist whose id it does not know. */
export function hasUnknownOutcome({ claim, subscriptions }: StoredRecord): boolean {
  return claim !== undefined || subscriptions.some(({ isOutcomeUnknown }) => isOutcomeUnknown === true)
}

/** The same texts are asked for again and again. */
const parsed = new Map<string, StoredRecord | undefined>()
const mostParsed = 1_000

/** A keeper reads no record of a higher version. */
const mostVersions = 2 ** 48

function parse(text: string): StoredRecord | undefined {
  try {
    const value = JSON.parse(text)
    const isRecord = typeof value.username === 'string' && Array.isArray(value.subscriptions)
    return isRecord && value.version < mostVersions ? value : undefined
  } catch {
    return undefined
  }
}
