/** What the page and the command line can do with the emulator: one POST for each. */
import * as z from 'zod'
import { InvalidRequestError } from '../../errors.js'
import { validate } from '../../shared/issues.js'
import type { Emulator } from '../emulator.js'
import type { NotifyAnswer, RevealedCredentials, RevealedEntry, RevealedSubscription } from './feed.js'
import type { Journal } from './journal.js'
import { maskUrl } from './mask.js'

/** Does what a POST asks for and returns the answer; throws `InvalidRequestError` for what cannot be done. */
type Action = (emulator: Emulator, body: unknown, journal: Journal) => object | Promise<object>

const subscriptionSchema = z.object({ subscriptionId: z.int() })
const revealSchema = z.union(
  [
    z.strictObject({ entryId: z.int() }),
    z.strictObject({ subscriptionId: z.int() }),
    z.strictObject({ credentials: z.literal(true) }),
  ],
  'must be { entryId }, { subscriptionId } or { credentials: true }',
)
const faultSchema = z.object({
  operation: z.unknown().optional(),
  fault: z.unknown().optional(),
  times: z.unknown().optional(),
  subscriptionId: z.unknown().optional(),
})

const actions: Readonly<Record<string, Action>> = {
  notify,
  fault(emulator, body) {
    const { operation, fault, times, subscriptionId } = parse(faultSchema, body)
    // Not checked here: `injectFault` checks its arguments, because callers in JavaScript may pass anything.
    const inject = emulator.injectFault.bind(emulator) as (...unchecked: unknown[]) => void
    inject(operation, fault, {
      ...(times !== undefined && { times }),
      ...(subscriptionId !== undefined && { subscriptionId }),
    })
    return {}
  },
  'clear-faults': (emulator) => {
    emulator.clearFaults()
    return {}
  },
  'revoke-tokens': (emulator) => {
    emulator.revokeTokens()
    return {}
  },
  end: (emulator, body) => ({
    ended: emulator.endSubscription(parse(subscriptionSchema, body).subscriptionId),
  }),
  reveal(emulator, body, journal) {
    const wanted = parse(revealSchema, body)
    if ('entryId' in wanted) return revealEntry(journal, wanted.entryId)
    if ('subscriptionId' in wanted) return revealSubscription(emulator, wanted.subscriptionId)
    return { clientSecret: emulator.clientSecret } satisfies RevealedCredentials
  },
}

/** The action of this name, if there is one. */
export function actionNamed(name: string): Action | undefined {
  return Object.hasOwn(actions, name) ? actions[name] : undefined
}

async function notify(emulator: Emulator, body: unknown): Promise<NotifyAnswer> {
  const results = await emulator.notify(body as Parameters<Emulator['notify']>[0])
  return {
    results: results.map(({ error, callbackUrl, ...result }) => ({
      ...result,
      callbackUrl: maskUrl(callbackUrl),
      ...(error !== undefined && { error: error.message }),
    })),
  }
}

function revealEntry(journal: Journal, entryId: number): RevealedEntry {
  const record = journal.record(entryId)
  if (record === undefined) throw nothingThere('entryId', 'The entry is gone: only the newest are kept')
  const headers = asPairs(record.headers)
  const { body } = record
  return 'path' in record
    ? { path: record.path, headers, body }
    : { callbackUrl: record.callbackUrl, headers, body }
}

function revealSubscription(emulator: Emulator, id: number): RevealedSubscription {
  const record = emulator.subscriptions.find(({ subscriptionId }) => subscriptionId === id)
  if (record === undefined) throw nothingThere('subscriptionId', `Subscription ${id} is not active`)
  return { callbackUrl: record.callbackUrl, parameters: asPairs(record.parameters) }
}

function asPairs(values: Readonly<Record<string, string>>): { name: string; value: string }[] {
  return Object.entries(values).map(([name, value]) => ({ name, value }))
}

function nothingThere(field: string, message: string): InvalidRequestError {
  return new InvalidRequestError(`${message}.`, { issues: [{ path: [field], message }] })
}

function parse<Output>(schema: z.ZodType<Output>, body: unknown): Output {
  return validate(
    schema,
    body,
    (issues, text) => new InvalidRequestError(`The request cannot be read: ${text}.`, { issues }),
  )
}
