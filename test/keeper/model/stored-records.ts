/** What the keeper has written into the store, as far as the model reads it. */

/** What the keeper's records say of a user, as far as it matters here. */
export interface StoredRecord {
  readonly u: string
  /** Whether the user is to be removed. */
  readonly x?: number
  /** Subscriptions: `doubt` 1 is one that may exist without a recorded id. */
  readonly s: readonly { readonly i?: number; readonly doubt?: number }[]
}

interface Parsed {
  readonly byName: ReadonlyMap<string, StoredRecord>
  readonly ids: readonly number[]
}

export function idsIn(text: string): readonly number[] {
  return parse(text).ids
}

export function usernamesIn(text: string): string[] {
  return [...parse(text).byName.keys()]
}

export function recordIn(text: string, username: string): StoredRecord | undefined {
  return parse(text).byName.get(username)
}

/** Whether the head says that an earlier process knew more of a user. */
export function isLeftOver(text: string, username: string): boolean {
  if (!text.includes('"leftovers"')) return false
  const { leftovers }: { leftovers: { u: string }[] } = JSON.parse(text)
  return leftovers.some(({ u }) => u === username)
}

export function removedIn(text: string): string[] {
  return [...parse(text).byName.values()].filter(({ x }) => x === 1).map(({ u }) => u)
}

const noRecords: Parsed = { byName: new Map(), ids: [] }
/** The same texts are asked for again and again. */
const parsedBefore = new Map<string, Parsed>()
const mostParsed = 100

function parse(text: string): Parsed {
  if (!text.includes('"records"')) return noRecords
  const known = parsedBefore.get(text)
  if (known !== undefined) return known
  const { records }: { records: StoredRecord[] } = JSON.parse(text)
  const parsed = {
    byName: new Map(records.map((record) => [record.u, record])),
    ids: records.flatMap(({ s: slots }) => slots.flatMap(({ i: id }) => (id === undefined ? [] : [id]))),
  }
  if (parsedBefore.size >= mostParsed) parsedBefore.clear()
  parsedBefore.set(text, parsed)
  return parsed
}
