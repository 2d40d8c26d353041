/** Tracing channels of `node:diagnostics_channel` (docs/observability.md, Traces). */
import type { TracingChannel } from 'node:diagnostics_channel'
import { NotificationError } from '../errors.js'

export type Channel = TracingChannel<unknown, object> | undefined

/** The channel `notification-subscriber:NAME`. Not imported, because a receiver also runs where Node.js does not. */
export function channelFor(name: 'call' | 'token' | 'sweep' | 'deliver' | 'receive'): Channel {
  const module = globalThis.process?.getBuiltinModule?.('node:diagnostics_channel')
  return module?.tracingChannel(`notification-subscriber:${name}`)
}

/**
 * Runs a function, and publishes its context at its start and end, with the error if it fails, as
 * `TracingChannel.tracePromise` does, but never its result, which may be a token. Nothing is computed while the channel
 * has no subscribers. Not an async function, which would be one more line in the stack of every error.
 *
 * @param contextOf - makes the context; `run` may change it while it works
 */
export function traced<Context extends object, Result>(
  channel: Channel,
  contextOf: () => Context,
  run: (context: Context | undefined) => Promise<Result>,
): Promise<Result> {
  if (!channel?.hasSubscribers) return run(undefined)
  const context: Context & { error?: unknown } = contextOf()
  return channel.start.runStores(context, async () => {
    try {
      let work: Promise<Result>
      try {
        work = run(context)
      } finally {
        channel.end.publish(context)
      }
      return await work
    } catch (error) {
      context.error = shownError(error)
      channel.error.publish(context)
      throw error
    } finally {
      channel.asyncStart.publish(context)
      channel.asyncEnd.publish(context)
    }
  })
}

/** Errors of this package hold no secret. An error of a user's function or signal may: only its name is published. */
function shownError(error: unknown): unknown {
  if (error instanceof NotificationError) return error
  const name = error instanceof Error ? error.name : typeof error
  return Object.assign(new Error('not an error of this package: its message is left out'), { name })
}
