/** `notification-subscriber subscribe`, `update` and `unsubscribe`: one call about one subscription. */
import type { Issue } from '../errors.js'
import { type NotificationType, notificationTypes } from '../notification-types.js'
import { withoutQuery } from '../shared/addresses.js'
import { excerpt } from '../shared/text.js'
import { numericIdPattern } from '../shared/validation.js'
import type { CreateSubscriptionInput } from '../subscriptions/schemas.js'
import { callService } from './call.js'
import { commandOf, namedValuesOf, required, UsageError } from './command.js'

const sharedHelp = `
  --dotenv FILE            read the variables from this file; those of the environment come first
  --json                   one JSON object, with the event`

const parameterHelp = `
  --parameter NAME=SOURCE  comes back as a header on every callback, such as a token: its name, and where its value is,
                           @FILE or env:VARIABLE. May be given several times`

export const subscribeCommand = commandOf({
  name: 'subscribe',
  help: `Usage: notification-subscriber subscribe --type T --user U --callback-url URL --parameter NAME=SOURCE [flags]

Creates a subscription with the credentials in NOTIFICATION_*, and prints its ID, which update and unsubscribe need.

  --type T                 ${notificationTypes.join(', ')}; several with commas, or several times
  --user U                 the user (agent) to subscribe; several with commas, or several times
  --callback-url URL       where the service sends notifications; https:${parameterHelp}
  --recreate-if-exists     replaces a subscription with exactly the same types, users and callback URL${sharedHelp} "subscribed"`,
  flags: {
    texts: ['callback-url', 'dotenv'],
    lists: ['type', 'user', 'parameter'],
    switches: ['recreate-if-exists'],
  },
  async run({ flags, terminal, env }) {
    const types = required('--type', flags.type, `name one or more of ${notificationTypes.join(', ')}`)
    const users = required('--user', flags.user, 'name the users (agents) to subscribe')
    const callbackUrl = required('--callback-url', flags['callback-url'], 'name the address of your receiver')
    const input: CreateSubscriptionInput = {
      // The client refuses what is no type, and says which there are.
      notificationTypes: namesIn(types) as NotificationType[],
      usernames: namesIn(users),
      callbackUrl,
      parameters: await namedValuesOf('--parameter', flags.parameter, env),
      recreateIfExists: flags['recreate-if-exists'],
    }
    const { subscriptionId } = await callService(
      'create',
      { env, terminal },
      (client, options) => client.createSubscription(input, options),
      (path) => flagOf(path, input),
    )
    terminal.event('subscribed', { subscriptionId })
    const names = excerpt(input.usernames.join(', '), 200)
    const what = `${input.notificationTypes.join(', ')} of ${names}, to ${withoutQuery(callbackUrl)}`
    terminal.success(`Subscription ${subscriptionId} is active: ${what}`)
    if (flags.parameter === undefined) {
      terminal.line(
        '  → Its callbacks carry no secret, so a receiver that checks one refuses them: add --parameter',
      )
    }
    return 0
  },
})

export const updateCommand = commandOf({
  name: 'update',
  help: `Usage: notification-subscriber update ID --parameter NAME=SOURCE [flags]

Changes parameters of a subscription: later callbacks carry the new values. Other parameters keep their values.
${parameterHelp}${sharedHelp} "updated"`,
  flags: { texts: ['dotenv'], lists: ['parameter'] },
  takesWords: true,
  async run({ flags, words, terminal, env }) {
    const subscriptionId = idOf('update', words)
    const advice = 'name a parameter, and where its new value is, @FILE or env:VARIABLE'
    const texts = required('--parameter', flags.parameter, advice)
    const parameters = await namedValuesOf('--parameter', texts, env)
    await callService(
      'update',
      { env, terminal },
      (client, options) => client.updateSubscriptionParameters(subscriptionId, { parameters }, options),
      (path) => flagOf(path, {}),
    )
    terminal.event('updated', { subscriptionId })
    const names = excerpt(Object.keys(parameters).join(', '), 200)
    terminal.success(
      `Subscription ${subscriptionId} was updated: callbacks from now on carry the new ${names}`,
    )
    return 0
  },
})

export const unsubscribeCommand = commandOf({
  name: 'unsubscribe',
  help: `Usage: notification-subscriber unsubscribe ID [flags]

Ends a subscription.
${sharedHelp} "unsubscribed"`,
  flags: { texts: ['dotenv'] },
  takesWords: true,
  async run({ words, terminal, env }) {
    const subscriptionId = idOf('unsubscribe', words)
    await callService('unsubscribe', { env, terminal }, (client, options) =>
      client.unsubscribe(subscriptionId, options),
    )
    terminal.event('unsubscribed', { subscriptionId })
    terminal.success(`Subscription ${subscriptionId} has ended`)
    return 0
  },
})

/** No user name or type has a comma. */
function namesIn(texts: readonly string[]): string[] {
  return texts.flatMap((text) => text.split(','))
}

function idOf(command: string, positionals: readonly string[]): number {
  const [text, stray] = positionals
  const id = numericIdPattern.test(text ?? '') ? Number(text) : Number.NaN
  if (stray === undefined && Number.isSafeInteger(id)) return id
  throw new UsageError(
    `Name one subscription by the ID that subscribe printed: notification-subscriber ${command} 42`,
  )
}

const flags: Readonly<Record<string, string>> = {
  notificationTypes: '--type',
  usernames: '--user',
  callbackUrl: '--callback-url',
  parameters: '--parameter',
}

/** The flag that an issue is about, with the name or value if there may be several. */
function flagOf([field = '', part]: Issue['path'], input: Partial<CreateSubscriptionInput>): string {
  const { [field]: values }: Record<PropertyKey, unknown> = { ...input }
  const which = Array.isArray(values) && typeof part === 'number' ? values[part] : part
  return [flags[String(field)] ?? String(field), which].filter((word) => word !== undefined).join(' ')
}
