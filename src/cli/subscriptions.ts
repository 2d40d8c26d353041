/** `notification-subscriber subscribe`, `update` and `unsubscribe`: one call about one subscription. */
import type { Issue } from '../errors.js'
import type { NotificationType } from '../notification-types.js'
import { withoutQuery } from '../shared/addresses.js'
import { excerpt } from '../shared/text.js'
import type { CreateSubscriptionInput } from '../subscriptions/schemas.js'
import { callService } from './call.js'
import { type CommandContext, namedValuesOf, type SharedFlags } from './command.js'

interface SubscribeFlags extends SharedFlags {
  readonly type: readonly string[]
  readonly user: readonly string[]
  readonly callbackUrl: string
  readonly parameter?: readonly string[]
  readonly recreateIfExists?: true
}

export async function subscribe(context: CommandContext, given: SubscribeFlags): Promise<number> {
  const { type, user, callbackUrl, parameter, recreateIfExists } = given
  const { terminal, env } = context
  const input: CreateSubscriptionInput = {
    // The client refuses what is no type, and says which there are.
    notificationTypes: type as NotificationType[],
    usernames: [...user],
    callbackUrl,
    parameters: await namedValuesOf('--parameter', parameter, env),
    recreateIfExists,
  }
  const { subscriptionId } = await callService(
    context,
    (client, options) => client.createSubscription(input, options),
    {
      flagOf: (path) => flagOf(path, input),
      ifInterrupted:
        'The subscription may exist. To be sure, run it again with --recreate-if-exists: that leaves exactly one subscription, and prints its ID',
    },
  )
  const names = excerpt(user.join(', '), 200)
  const what = `${type.join(', ')} of ${names}, to ${withoutQuery(callbackUrl)}`
  terminal.success('subscribed', { subscriptionId }, `Subscription ${subscriptionId} is active: ${what}`)
  if (parameter === undefined) {
    terminal.line(
      '  → Its callbacks carry no secret, so a receiver that checks one refuses them: add --parameter',
    )
  }
  return 0
}

interface UpdateFlags extends SharedFlags {
  readonly parameter: readonly string[]
}

export async function update(
  context: CommandContext,
  subscriptionId: number,
  flags: UpdateFlags,
): Promise<number> {
  const { terminal, env } = context
  const parameters = await namedValuesOf('--parameter', flags.parameter, env)
  await callService(
    context,
    (client, options) => client.updateSubscriptionParameters(subscriptionId, { parameters }, options),
    { flagOf: (path) => flagOf(path, {}) },
  )
  const names = excerpt(Object.keys(parameters).join(', '), 200)
  const done = `Subscription ${subscriptionId} was updated: callbacks from now on carry the new ${names}`
  terminal.success('updated', { subscriptionId }, done)
  return 0
}

export async function unsubscribe(context: CommandContext, subscriptionId: number): Promise<number> {
  await callService(context, (client, options) => client.unsubscribe(subscriptionId, options))
  context.terminal.success('unsubscribed', { subscriptionId }, `Subscription ${subscriptionId} has ended`)
  return 0
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
