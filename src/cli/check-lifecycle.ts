/** `check --lifecycle`: makes the calls of a subscription's life, compares the answers with docs/service.md, and cleans up. */
import { randomBytes } from 'node:crypto'
import { routeVariable } from '../client/environment.js'
import type { NotificationClient } from '../client/notification-client.js'
import type { CallOptions } from '../client/options.js'
import { NotificationError } from '../errors.js'
import { endpoints } from '../shared/routes.js'
import { messageIn } from '../shared/words.js'
import { mayHaveTakenEffect } from '../subscriptions/answer-errors.js'
import type { CreateSubscriptionInput } from '../subscriptions/schemas.js'
import { Finding, type Steps } from './step-report.js'
import { inCheck } from './words.js'

const { success } = endpoints.create

type Wanted = Pick<CreateSubscriptionInput, 'parameters'> &
  Readonly<Record<'username' | 'callbackUrl', string>>

/** @param signal - ends the calls, but not the clean-up; its reason is a `Finding` */
export async function checkLifecycle(
  steps: Steps,
  client: NotificationClient,
  { username, callbackUrl, parameters }: Wanted,
  signal: AbortSignal,
): Promise<void> {
  // Random, so that no other subscription conflicts or is replaced.
  const mark = `check=${randomBytes(4).toString('hex')}`
  const input: CreateSubscriptionInput = {
    notificationTypes: ['behavioral'],
    usernames: [username],
    callbackUrl: `${callbackUrl}${callbackUrl.includes('?') ? '&' : '?'}${mark}`,
    parameters,
  }
  const again: CreateSubscriptionInput = { ...input, recreateIfExists: true }
  const overlap: CreateSubscriptionInput = { ...again, notificationTypes: ['behavioral', 'call-score'] }
  let id = 0
  let status = 0
  let mayExist = false
  const options: CallOptions = {
    signal,
    onResponse(response) {
      status = response.status
    },
  }

  const create = async (
    wanted: CreateSubscriptionInput,
    documented: 'conflict' | 'success',
  ): Promise<string> => {
    const before = id
    const result = await client.tryCreateSubscription(wanted, options).catch((error) => {
      mayExist ||= mayHaveTakenEffect(error)
      throw error
    })
    mayExist = true
    if (result.created) id = result.subscriptionId
    const isNew = result.created && id !== before && status === success
    if (documented === 'success' ? isNew : !result.created) return `answered ${status}, as documented`
    const expected = documented === 'success' ? `${success} with a new subscription` : '409'
    const next = 'The client relies on the documented answer: ask the operator of the service'
    throw new Finding(`answered ${status}, and ${expected} is documented`, next)
  }
  const calls: Readonly<Record<string, () => Promise<string>>> = {
    Create: () => create(input, 'success'),
    Duplicate: () => create(input, 'conflict'),
    'Overlap with recreateIfExists': () => create(overlap, 'conflict'),
    Recreate: () => create(again, 'success'),
    async Update() {
      await client.updateSubscriptionParameters(id, { parameters: { check: 'updated' } }, options)
      return 'answered as documented'
    },
    async Unsubscribe() {
      await client.unsubscribe(id, options)
      // A route that answers 2xx to everything ends nothing.
      const { created } = await client.tryCreateSubscription(input, options)
      if (created) return 'answered as documented: the same subscription can be created again'
      const next = `The service may have another route for this: set ${routeVariable('unsubscribe')}`
      throw new Finding('answered success, but the same create is a 409: the subscription still exists', next)
    },
  }
  for (const [name, call] of Object.entries(calls)) {
    const hasPassed = await steps.run(name, call)
    // Without a subscription the other steps say nothing.
    if (signal.aborted || (!hasPassed && id === 0)) break
  }
  if (!mayExist) return
  await steps.run('Clean-up', async () => {
    const patiently = { timeoutMs: 30_000, retry: { maxAttempts: 5 } }
    try {
      // Whatever happened, this leaves exactly one subscription, and returns its ID.
      id = (await client.createSubscription(again, patiently)).subscriptionId
      await client.unsubscribe(id, patiently)
      return 'every subscription of this check was unsubscribed'
    } catch (error) {
      if (!(error instanceof NotificationError)) throw error
      const left = `subscription ${id || 'without a known ID'} may be left, whose callback URL ends with ${mark}`
      const next = id ? `End it: npx --no notification-subscriber unsubscribe ${id}` : undefined
      throw new Finding(`${left}. ${messageIn(inCheck, error)}`, next)
    }
  })
}
