/** `notification-subscriber receive`: prints the callbacks that arrive at this machine. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { clock } from '../emulator/words.js'
import { loopbackCallbackProblem } from '../shared/addresses.js'
import { excerpt, messageOf } from '../shared/text.js'
import { formatIssues } from '../shared/validation.js'
import { DeliveryReceiver, toNodeHandler } from '../webhooks/index.js'
import { type CommandContext, namedValuesOf, type SharedFlags, UsageError } from './command.js'
import { untilInterrupted } from './signals.js'

export interface ReceiveFlags extends SharedFlags {
  readonly port: number
  readonly secret?: readonly string[]
}

export async function receive(flags: ReceiveFlags, { terminal, env }: CommandContext): Promise<number> {
  const { secret: sources = ['token=env:CALLBACK_TOKEN'] } = flags
  if (flags.secret === undefined && !env.CALLBACK_TOKEN) {
    throw new UsageError(
      'CALLBACK_TOKEN is not set: name a file that sets it, such as --dotenv .emulator/env, or the header and its value with --secret',
    )
  }
  const secrets = await namedValuesOf('--secret', sources, env)
  const print = (...parts: string[]) =>
    terminal.line([terminal.paint('dim', clock(Date.now()).slice(0, 8)), ...parts].join('  '))

  const receiver = new DeliveryReceiver({
    secrets,
    logger: false,
    onRefused({ status, reason }) {
      terminal.event('refused', { status, reason })
      print(terminal.paint('red', `refused with ${status}`), reason)
    },
    onInvalid({ issues, bodyText }) {
      terminal.event('invalid', { issues, bodyText })
      print(terminal.paint('red', 'no delivery'), formatIssues(issues), excerpt(bodyText, 300))
    },
  })
  receiver.onAny(({ type, payload }, { delivery }) => {
    const { subscriptionId } = delivery
    terminal.event('callback', delivery)
    const { username = 'no user' }: { username?: unknown } = Object(payload)
    const who = `${excerpt(String(username), 80)}, subscription ${subscriptionId}`
    print(who, terminal.paint('bold', excerpt(type, 80)), excerpt(JSON.stringify(payload), 2_000))
  })
  const server = createServer(toNodeHandler(receiver))
  const interrupted = untilInterrupted()
  server.listen(flags.port, '127.0.0.1')
  await once(server, 'listening').catch((error) => {
    throw new UsageError(`--port ${flags.port} cannot be listened on, name another: ${messageOf(error)}`)
  })
  const { port } = Object(server.address())
  const url = `http://localhost:${port}/`
  terminal.event('listening', { url })
  const parameters = sources.map((source) => ` --parameter ${source}`).join('')
  const variables = flags.dotenv === undefined ? '' : ` --dotenv ${flags.dotenv}`
  terminal.line(`Callbacks to ${terminal.paint('bold', url)} are printed here. Next, in another terminal:`)
  // The service calls this address from its own machine.
  const isElsewhere = loopbackCallbackProblem(url, env.NOTIFICATION_BASE_URL) !== undefined
  const callbackUrl = isElsewhere ? `https://<a tunnel to port ${port}>/` : url
  const subscribe = `subscribe${variables} --type behavioral --user alice --callback-url ${callbackUrl}${parameters}`
  terminal.line(`  npx --no notification-subscriber ${subscribe}`)
  terminal.line(`${await interrupted}: answering what has arrived …`)
  await receiver.close(server, { timeoutMs: 5_000 })
  terminal.event('closed', {})
  terminal.line('Closed.')
  return 0
}
