/** The actions of the page and the command line: one POST for each. Forms send their values as text. */
import * as z from 'zod'
import { typeThatBrings } from '../../notification-types.js'
import { withoutQuery } from '../../shared/addresses.js'
import { excerpt } from '../../shared/text.js'
import { invalidRequest, parseJson, validate } from '../../shared/validation.js'
import type { CallbackResult } from '../callbacks.js'
import { outgoingNotification } from '../notification.js'
import type { PageHost } from './host.js'

/** @throws `InvalidRequestError` if the action is impossible */
type Action = (host: PageHost, body: unknown) => unknown

const actions: Readonly<Record<string, Action>> = {
  'api/notify': notify,
  'api/resend': resend,
  'api/inject'({ faults }, body) {
    const { operation, fault, ...options } = parse(faultSchema, body)
    faults.inject(operation, fault, options)
  },
  'api/clear': ({ faults }) => faults.clear(),
  'api/revoke-tokens': ({ tokens }) => tokens.revokeAll(),
  'api/end'({ store }, body) {
    store.end(parse(z.object({ subscriptionId: id }), body).subscriptionId, 'by-request')
  },
}

const id = z.coerce.number()

/** Every option is a number. Not `z.coerce.number()`, which refuses `Infinity`. */
const faultSchema = z
  .object({ operation: z.unknown(), fault: z.preprocess(jsonIn, z.unknown()) })
  .catchall(z.unknown().transform(Number))

export function actionAt(path: string): Action | undefined {
  return Object.hasOwn(actions, path) ? actions[path] : undefined
}

/** The answer to `notify`; the newest subscriptions only if none matched. */
export type NotifyAnswer = Awaited<ReturnType<typeof notify>>

const notificationSchema = z.looseObject({
  type: z.string().default('lowEnergyAgentOpened'),
  username: z.string().optional(),
  payload: z.preprocess(jsonIn, z.unknown()).optional(),
})

/** The default type is the documented one; the default user is the first who is subscribed to the type. */
async function notify({ callbacks, store }: PageHost, body: unknown) {
  const given = parse(notificationSchema, body)
  const { type, category = typeThatBrings(type) } = given
  const isMatch = (each: unknown) => each === category
  const first = store.list().find(({ notificationTypes }) => notificationTypes.some(isMatch))
  const { username = first?.usernames[0] ?? 'alice' } = given
  const results = await callbacks.send(outgoingNotification({ ...given, username }))
  const subject = `${excerpt(username, 80)}, and ${excerpt(type, 80)} needs one`
  const newest = results.length > 0 ? [] : store.list().slice(-20).reverse()
  return {
    type,
    category,
    username,
    results: results.map(({ error, callbackUrl, ...result }) => ({
      ...result,
      callbackUrl: withoutQuery(callbackUrl),
      ...(error !== undefined && { error: error.message }),
    })),
    subscribed: newest.map(({ subscriptionId, notificationTypes, usernames }) => ({
      subscriptionId,
      notificationTypes,
      usernames,
    })),
    message:
      results.length === 0
        ? `Nothing was sent: no subscription to ${category} is for ${subject}.`
        : inWords(results),
  }
}

async function resend({ activity, callbacks }: PageHost, body: unknown): Promise<object> {
  const event = activity.event(parse(z.object({ event: id }), body).event)
  if (event?.kind !== 'callback' || event.request.body.length < event.request.bodyLength) {
    const message = 'is not a callback whose whole body was kept'
    throw invalidRequest('This cannot be sent again')([{ path: ['event'], message }])
  }
  return { message: inWords([await callbacks.resend(event.request)]) }
}

function inWords(results: readonly CallbackResult[]): string {
  const [failed] = results.filter(({ status }) => status === undefined)
  return failed?.error?.message ?? `Answered ${results.map(({ status }) => status).join(', ')}`
}

/** A field of a form has JSON as text. What is no JSON stays as it is, and is refused later. */
function jsonIn(value: unknown): unknown {
  return typeof value === 'string' ? (parseJson(value) ?? value) : value
}

function parse<Output>(schema: z.ZodType<Output>, body: unknown): Output {
  return validate(schema, body, invalidRequest('The request cannot be read'))
}
