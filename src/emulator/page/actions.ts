/** The actions of the page and the command line: one POST for each. */
import * as z from 'zod'
import { InvalidRequestError } from '../../errors.js'
import { invalidRequest, validate } from '../../shared/validation.js'
import type { HistoryEntry } from '../activity.js'
import type { CallbackResult } from '../callbacks.js'
import type { EmulatedNotification } from '../notification.js'
import { masked, plain } from './mask.js'
import { entryView, type PageHost, serviceView } from './views.js'

/**
 * @returns the answer, if it is more than success
 * @throws `InvalidRequestError` if the action is impossible
 */
type Action = (host: PageHost, body: unknown) => unknown

/** The most subscriptions in the answer to a notification without a match. */
const newestShown = 20

const actions: Readonly<Record<string, Action>> = {
  notify,
  resend,
  fault({ faults }, body) {
    // `add` checks the values.
    const { operation, fault, ...options } = parse(z.looseObject({}), body)
    // JSON has no `Infinity`: until the fault is lifted.
    if (options.times === null) options.times = Number.POSITIVE_INFINITY
    faults.add(operation, fault, options)
  },
  'lift-fault': ({ faults }, body) => faults.lift(idIn('id', body)),
  'clear-faults': ({ faults }) => faults.clear(),
  'revoke-tokens': ({ emulator }) => emulator.revokeTokens(),
  end: ({ emulator }, body) => ({ ended: emulator.endSubscription(idIn('subscriptionId', body)) }),
  // Copies have their secrets, even while the page masks them.
  'reveal-entry': (host, body) => entryView(entryOf(host, body), plain),
  'reveal-service': (host) => serviceView(host, plain),
}

export function actionNamed(name: string): Action | undefined {
  return Object.hasOwn(actions, name) ? actions[name] : undefined
}

/** The answer to `notify`; the newest subscriptions only if none matched. */
export type NotifyAnswer = Awaited<ReturnType<typeof notify>>

async function notify({ emulator }: PageHost, body: unknown) {
  // Not checked here: `notify` checks its argument, because callers in JavaScript may pass anything.
  const results = await emulator.notify(body as EmulatedNotification)
  const { subscriptions } = emulator
  const newest = results.length > 0 ? [] : subscriptions.slice(-newestShown).reverse()
  return {
    results: results.map(resultView),
    subscribed: newest.map(({ subscriptionId, notificationTypes, usernames }) => ({
      subscriptionId,
      notificationTypes,
      usernames,
    })),
    subscribedCount: subscriptions.length,
  }
}

async function resend(host: PageHost, body: unknown): Promise<object> {
  const entry = entryOf(host, body)
  if (entry.kind !== 'callback') throw refused('entryId', 'Only a callback can be sent again')
  if (entry.record.body.length < entry.record.bodyLength) {
    throw refused('entryId', 'Only the beginning of this body was kept, so it cannot be sent again')
  }
  return resultView(await host.callbacks.resend(entry.record))
}

function resultView({ error, callbackUrl, ...result }: CallbackResult) {
  return {
    ...result,
    callbackUrl: masked.url(callbackUrl),
    ...(error !== undefined && { error: error.message }),
  }
}

function entryOf({ activity }: PageHost, body: unknown): HistoryEntry {
  const entry = activity.entry(idIn('entryId', body))
  if (entry === undefined) throw refused('entryId', 'The entry is gone: only the newest are kept')
  return entry
}

function refused(field: string, message: string): InvalidRequestError {
  return new InvalidRequestError(`${message}.`, { issues: [{ path: [field], message }] })
}

function idIn(field: string, body: unknown): number {
  return parse(z.object({ [field]: z.int() }), body)[field] ?? 0
}

function parse<Output>(schema: z.ZodType<Output>, body: unknown): Output {
  return validate(schema, body, invalidRequest('The request cannot be read'))
}
