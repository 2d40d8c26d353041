/**
 * Makes sure at start-up that a subscription exists, also after a crash or a lost answer.
 *
 *     npm install notification-subscriber tsx
 *     npx tsx resilient-startup.mts
 *
 * To copy: `ensureSubscription`. The rest runs it on the emulator, once for each possible failure. It is enough
 * for one subscription whose users rarely change, in an app that starts often: between two starts the app does not notice
 * that the subscription has ended, and a change of users leaves all of them without notifications for a moment. If that
 * matters, use `SubscriptionKeeper` (docs/keeper.md).
 */
import {
  type CreateSubscriptionInput,
  NotificationClient,
  OutcomeUnknownError,
  SubscriptionConflictError,
  SubscriptionNotFoundError,
} from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'

/**
 * Returns the id of a subscription for exactly the wanted types, users and callback URL.
 *
 * @param previousId - the id that this function returned at the last start
 */
async function ensureSubscription(
  client: NotificationClient,
  wanted: CreateSubscriptionInput,
  previousId?: number,
): Promise<number> {
  try {
    // Repeats the request after broken connections and for a busy service, as far as that is safe.
    const { subscriptionId } = await client.createSubscription(wanted)
    return subscriptionId
  } catch (error) {
    // The subscription may exist (the answer was lost), or exists from an earlier start: replace it in both cases.
    if (error instanceof OutcomeUnknownError || error instanceof SubscriptionConflictError) {
      say(error.code, error.message)
      return replaceSubscription(client, wanted, previousId)
    }
    throw error
  }
}

/** With `recreateIfExists` there is one subscription in the end, whether or not one existed before. */
async function replaceSubscription(
  client: NotificationClient,
  wanted: CreateSubscriptionInput,
  previousId: number | undefined,
): Promise<number> {
  const replacing = { ...wanted, recreateIfExists: true }
  const result = await client.tryCreateSubscription(replacing)
  if (result.created) return result.subscriptionId

  // Only a partial overlap is left: the wanted types or users have changed since the last start.
  say(result.conflict.code, result.conflict.message)
  if (previousId === undefined) throw result.conflict
  await client.unsubscribe(previousId).catch((error: unknown) => {
    // The service may have ended the subscription. Other errors are for the operator.
    if (!(error instanceof SubscriptionNotFoundError)) throw error
  })
  return (await client.createSubscription(replacing)).subscriptionId
}

// --- What can happen, one start after the other ---------------------------------------------------------

await using emulator = await startEmulator()
await using client = new NotificationClient(emulator.clientOptions)
const wanted: CreateSubscriptionInput = {
  notificationTypes: ['behavioral'],
  usernames: ['alice', 'bob'],
  callbackUrl: 'https://app.example.com/notifications',
}

say('1', 'The service is busy at first')
emulator.injectFault('create', { status: 503, headers: { 'retry-after': '0' } }, { times: 2 })
let subscriptionId = await ensureSubscription(client, wanted)
report()

say('2', 'The app starts again, and its subscription still exists')
subscriptionId = await ensureSubscription(client, wanted, subscriptionId)
report()

say('3', 'The app has unsubscribed; at the next start the connection breaks before the answer arrives')
await client.unsubscribe(subscriptionId)
emulator.injectFault('create', { reset: 'after-processing' })
subscriptionId = await ensureSubscription(client, wanted, subscriptionId)
report()

say('4', 'A new version of the app wants one more user')
const wantedNow = { ...wanted, usernames: ['alice', 'bob', 'carol'] }
subscriptionId = await ensureSubscription(client, wantedNow, subscriptionId)
report()
say('Next', 'copy ensureSubscription; to keep many users subscribed: docs/keeper.md')

function report(): void {
  const [existing, ...others] = emulator.subscriptions
  const agrees = existing?.subscriptionId === subscriptionId && others.length === 0
  if (!agrees) throw new Error('The service has other subscriptions than the app expects')
  say('settled', `subscription ${subscriptionId} for ${existing.usernames}, and no other\n`)
}

function say(title: string, text: string): void {
  console.log(`${title.padEnd(22)} ${text}`)
}
