/** What the page and the command line can do with the emulator: one POST for each. */
import * as z from 'zod'
import { InvalidRequestError } from '../../errors.js'
import { validate } from '../../shared/validation.js'
import type { EmulatedNotification } from '../notification.js'
import type { SubscriptionRecord } from '../service/subscription-store.js'
import type { PageHost } from './host.js'
import type { NotifyAnswer, RevealedCredentials, RevealedEntry, RevealedSubscription } from './protocol.js'
import { asPairs, maskUrl, variablesOf } from './views.js'

/** Does what a POST asks for and returns the answer; throws `InvalidRequestError` for what cannot be done. */
type Action = (host: PageHost, body: unknown) => object | Promise<object>

/** Subscriptions in the answer to a notification that no subscription wanted. */
const newestShown = 20

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
  fault(host, body) {
    const { operation, fault, times, subscriptionId } = parse(faultSchema, body)
    host.injectFault(operation, fault, {
      ...(times !== undefined && { times }),
      ...(subscriptionId !== undefined && { subscriptionId }),
    })
    return {}
  },
  'clear-faults': ({ emulator }) => {
    emulator.clearFaults()
    return {}
  },
  'revoke-tokens': ({ emulator }) => {
    emulator.revokeTokens()
    return {}
  },
  end: ({ emulator }, body) => ({
    ended: emulator.endSubscription(parse(subscriptionSchema, body).subscriptionId),
  }),
  reveal(host, body) {
    const wanted = parse(revealSchema, body)
    if ('entryId' in wanted) return revealEntry(host, wanted.entryId)
    if ('subscriptionId' in wanted) return revealSubscription(host, wanted.subscriptionId)
    return {
      clientSecret: host.emulator.clientSecret,
      variables: variablesOf(host),
    } satisfies RevealedCredentials
  },
}

/** The action of this name, if there is one. */
export function actionNamed(name: string): Action | undefined {
  return Object.hasOwn(actions, name) ? actions[name] : undefined
}

async function notify({ emulator }: PageHost, body: unknown): Promise<NotifyAnswer> {
  // Not checked here: `notify` checks its argument, because callers in JavaScript may pass anything.
  const results = await emulator.notify(body as EmulatedNotification)
  if (results.length === 0) return { results: [], ...subscribed(emulator.subscriptions) }
  return {
    results: results.map(({ error, callbackUrl, ...result }) => ({
      ...result,
      callbackUrl: maskUrl(callbackUrl),
      ...(error !== undefined && { error: error.message }),
    })),
  }
}

/** The newest subscriptions, for the answer to a notification that no subscription wanted. */
function subscribed(subscriptions: readonly SubscriptionRecord[]): Partial<NotifyAnswer> {
  return {
    subscribed: subscriptions
      .slice(-newestShown)
      .reverse()
      .map(({ subscriptionId, notificationTypes, usernames }) => ({
        ...{ subscriptionId, notificationTypes, usernames },
      })),
    subscribedCount: subscriptions.length,
  }
}

function revealEntry({ activity }: PageHost, entryId: number): RevealedEntry {
  const entry = activity.entry(entryId)
  if (entry === undefined || !('record' in entry)) {
    throw nothingThere('entryId', 'The entry is gone: only the newest are kept')
  }
  const { headers, body } = entry.record
  const message = { headers: asPairs(headers), body }
  return entry.kind === 'request'
    ? { path: entry.record.path, ...message }
    : { callbackUrl: entry.record.callbackUrl, ...message }
}

function revealSubscription({ emulator }: PageHost, id: number): RevealedSubscription {
  const record = emulator.subscriptions.find(({ subscriptionId }) => subscriptionId === id)
  if (record === undefined) throw nothingThere('subscriptionId', `Subscription ${id} is not active`)
  return { callbackUrl: record.callbackUrl, parameters: asPairs(record.parameters) }
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
