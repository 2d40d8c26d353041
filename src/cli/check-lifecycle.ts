/** `check --lifecycle`: makes the calls of a subscription's life, compares the answers with docs/service.md, and cleans up. */
import { randomBytes } from 'node:crypto'
import { routeVariable } from '../client/environment.js'
import type { NotificationClient } from '../client/notification-client.js'
import type { CallOptions } from '../client/options.js'
import { NotificationError } from '../errors.js'
import { endpoints } from '../shared/routes.js'
import { messageOf } from '../shared/text.js'
import { mayHaveTakenEffect } from '../subscriptions/answer-errors.js'
import type { CreateSubscriptionInput } from '../subscriptions/schemas.js'
import { Finding, type Steps } from './step-report.js'

const { success } = endpoints.create

type Wanted = Pick<CreateSubscriptionInput, 'parameters'> &
  Readonly<Record<'username' | 'callbackUrl', string>>

/** @param signal - ends the calls, but not the clean-up */
export async function checkLifecycle(
  steps: Steps,
  client: NotificationClient,
  { username, callbackUrl, parameters }: Wanted,
  signal: AbortSignal,
): Promise<void> {
  // Random, so that no other subscription conflicts or is replaced.
  const mark = `check=${randomBytes(4).toString('hex')}`
  const input = {
    notificationTypes: ['behavioral'],
    usernames: [username],
    callbackUrl: `${callbackUrl}${callbackUrl.includes('?') ? '&' : '?'}${mark}`,
    parameters,
  } satisfies CreateSubscriptionInput
  const again = { ...input, recreateIfExists: true }
  const overlap = {
    ...again,
    notificationTypes: ['behavioral', 'call-score'],
  } satisfies CreateSubscriptionInput
  let id = 0
  let status = 0
  const options: CallOptions = {
    signal,
    onResponse(response) {
      status = response.status
    },
  }
  let mayExist = false

  const create = async (wanted: CreateSubscriptionInput) => {
    try {
      const result = await client.tryCreateSubscription(wanted, options)
      if (result.created) id = result.subscriptionId
      mayExist = true
      return result.created
    } catch (error) {
      mayExist ||= mayHaveTakenEffect(error)
      throw error
    }
  }
  const conflict = (created: boolean) => must(!created, `${status}, and 409 is documented`, '409')
  const calls: Readonly<Record<string, () => Promise<string>>> = {
    Create: async () =>
      must(
        (await create(input)) && status === success,
        `${status}, and ${success} is documented`,
        `${success} with subscription ${id}`,
      ),
    Duplicate: async () => conflict(await create(input)),
    'Overlap with recreateIfExists': async () => conflict(await create(overlap)),
    async Recreate() {
      const replaced = id
      const isNew = (await create(again)) && id !== replaced && status === success
      return must(
        isNew,
        `${status}, and ${success} with a new subscription is documented`,
        `${success} with subscription ${id}`,
      )
    },
    async Update() {
      await client.updateSubscriptionParameters(id, { parameters: { check: 'updated' } }, { signal })
      return 'answered as documented'
    },
    async Unsubscribe() {
      await client.unsubscribe(id, { signal })
      // A route that answers 2xx to everything ends nothing.
      if (await create(input)) return 'answered as documented: the same subscription can be created again'
      throw new Finding('answered success, but creating it again is a 409: it exists', otherRoute)
    },
  }
  for (const [name, call] of Object.entries(calls)) {
    const hasPassed = await steps.run(name, () => call().catch((error) => throwAbout(error, signal)))
    // Without a subscription the others say nothing.
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
      const left = `subscription ${id} may be left, whose callback URL ends with ${mark}`
      throw new Finding(`${left} (${messageOf(error)})`, `Unsubscribe it. ${otherRoute}`)
    }
  })
}

const otherRoute = `The service may have another route for this: set ${routeVariable('unsubscribe')}`

function must(holds: boolean, otherwise: string, outcome: string): string {
  if (holds) return `answered ${outcome}, as documented`
  const next = 'The client relies on the documented answer: ask the operator of the service'
  throw new Finding(`answered ${otherwise}`, next)
}

function throwAbout(error: unknown, signal: AbortSignal): never {
  if (signal.aborted && !(error instanceof NotificationError))
    throw new Finding('interrupted', 'See the clean-up')
  throw error
}
