/** One call to the service: the client from the environment, Ctrl-C, and how a failure ends the command. */
import { NotificationClient } from '../client/notification-client.js'
import type { CallOptions } from '../client/options.js'
import { ConfigurationError, InvalidRequestError, type Issue, NotificationError } from '../errors.js'
import { formatIssues, sentenceAbout } from '../shared/validation.js'
import { messageIn } from '../shared/words.js'
import { type CommandContext, CommandFailure, UsageError } from './command.js'
import { type Interruption, onInterruption } from './signals.js'
import { onCommandLine } from './words.js'

interface CallWords {
  readonly flagOf?: (path: Issue['path']) => string
  readonly ifInterrupted?: string
}

/**
 * Calls the service with a client from the environment.
 *
 * @param words.flagOf - the flag that sets what an issue is about
 * @param words.ifInterrupted - what an interrupted call may have done, and what to do
 * @throws `UsageError` if nothing was sent, because variables or flags are wrong; `CommandFailure` for every other failure
 */
export async function callService<Result>(
  { env, terminal }: CommandContext,
  call: (client: NotificationClient, options: CallOptions) => Promise<Result>,
  { flagOf = String, ifInterrupted = 'Run it again: that is safe' }: CallWords = {},
): Promise<Result> {
  const abort = new AbortController()
  const stopListening = onInterruption((interruption) => abort.abort(interruption))
  try {
    await using client = NotificationClient.fromEnv({}, env)
    return await call(client, { signal: abort.signal })
  } catch (error) {
    if (abort.signal.aborted) {
      const { by, exitCode }: Interruption = abort.signal.reason
      throw new CommandFailure(`Interrupted by ${by}. ${ifInterrupted}`, exitCode)
    }
    if (error instanceof ConfigurationError) {
      const advice = 'Set or correct them in the environment, or in the file that --dotenv names'
      throw new UsageError(`${formatIssues(error.issues)}. ${advice}`)
    }
    if (error instanceof InvalidRequestError) {
      const sentences = error.issues.map(({ path, message }) => sentenceAbout(flagOf(path), message))
      throw new UsageError(sentences.join('; '))
    }
    if (!(error instanceof NotificationError)) throw error
    const message = messageIn(onCommandLine, error)
    const { code } = error
    terminal.event('failed', { code, status: 'status' in error ? error.status : undefined, message })
    throw new CommandFailure(`✘ ${code}: ${message}`)
  } finally {
    stopListening()
  }
}
