/** `notification-subscriber receive`: prints the callbacks that arrive at this machine. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { loopbackCallbackProblem } from '../shared/addresses.js'
import { excerpt, messageOf } from '../shared/text.js'
import { formatIssues } from '../shared/validation.js'
import { DeliveryReceiver, toNodeHandler } from '../webhooks/index.js'
import { type CommandContext, namedValuesOf, type SharedFlags, UsageError } from './command.js'
import { untilInterrupted } from './signals.js'

interface ReceiveFlags extends SharedFlags {
  readonly port: number
  readonly secret?: readonly string[]
}

export async function receive({ terminal, env }: CommandContext, flags: ReceiveFlags): Promise<number> {
  const { secret: sources = ['token=env:CALLBACK_TOKEN'] } = flags
  if (flags.secret === undefined && !env.CALLBACK_TOKEN) {
    throw new UsageError(
      'CALLBACK_TOKEN is not set: name a file that sets it, such as --dotenv .emulator/env, or the header and its value with --secret',
    )
  }
  const secrets = await namedValuesOf('--secret', sources, env)
  const receiver = new DeliveryReceiver({
    secrets,
    logger: false,
    onRefused({ status, reason }) {
      terminal.timed('refused', { status, reason }, terminal.paint('red', `refused with ${status}`), reason)
    },
    onInvalid({ issues, bodyText }) {
      const problem = [terminal.paint('red', 'no delivery'), formatIssues(issues), excerpt(bodyText, 300)]
      terminal.timed('invalid', { issues, bodyText }, ...problem)
    },
  })
  receiver.onAny(({ type, payload }, { delivery }) => {
    const { username = 'no user' }: { username?: unknown } = Object(payload)
    const who = `${excerpt(String(username), 80)}, subscription ${delivery.subscriptionId}`
    const what = terminal.paint('bold', excerpt(type, 80))
    terminal.timed('callback', delivery, who, what, excerpt(JSON.stringify(payload), 2_000))
  })
  const server = createServer(toNodeHandler(receiver))
  const interrupted = untilInterrupted()
  server.listen(flags.port, '127.0.0.1')
  await once(server, 'listening').catch((error) => {
    throw new UsageError(`--port ${flags.port} cannot be listened on, name another: ${messageOf(error)}`)
  })
  const { port } = Object(server.address())
  const url = `http://localhost:${port}/`
  const parameters = sources.map((source) => ` --parameter ${source}`).join('')
  const variables = flags.dotenv === undefined ? '' : ` --dotenv ${flags.dotenv}`
  // The service calls this address from its own machine.
  const isElsewhere = loopbackCallbackProblem(url, env.NOTIFICATION_BASE_URL) !== undefined
  const callbackUrl = isElsewhere ? `https://<a tunnel to port ${port}>/` : url
  const subscribe = `subscribe${variables} --type behavioral --user alice --callback-url ${callbackUrl}${parameters}`
  terminal.event(
    'listening',
    { url },
    `Callbacks to ${terminal.paint('bold', url)} are printed here. Next, in another terminal:`,
    `  npx --no notification-subscriber ${subscribe}`,
  )
  terminal.line(`${await interrupted}: answering what has arrived …`)
  await receiver.close(server, { timeoutMs: 5_000 })
  terminal.event('closed', {}, 'Closed.')
  return 0
}
