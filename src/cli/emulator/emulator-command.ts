/** `notification-subscriber emulator`: runs the emulator until it is told to stop. */
import type { Emulator, EmulatorOptions } from '../../emulator/index.js'
import { ConfigurationError } from '../../errors.js'
import type { Command, Surroundings } from '../command.js'
import { contentOf } from '../files.js'
import type { Terminal } from '../terminal.js'
import { portOf, readFlags, UsageError } from '../usage-error.js'
import { printEvents } from './event-lines.js'
import { reusableCertificate, StateFolder } from './state-folder.js'
import { waitForEnd } from './wait-for-end.js'

const help = `Usage: notification-subscriber emulator [flags]

Runs the notification service on this machine: HTTPS, signed tokens, real callbacks, and a page in the browser that
shows them. Prints the lines to put into .env and the page's address, then one line for each event. Ctrl-C ends it.

  --port N                    port of the service; default: any free one, with --state the one of the last time
  --host ADDRESS              address to listen on, e.g. 0.0.0.0 in a container; default 127.0.0.1.
                              The page stays on 127.0.0.1
  --page-port N               port of the page; default: any free one
  --state DIR                 keep credentials, port and certificate in this folder for the next start
  --callback-ca FILE          certificates in PEM to trust on callbacks
  --allow-insecure-loopback   accept callback URLs with http: on loopback
  --json                      one JSON object a line; the first has the event "listening"`

export const emulatorCommand: Command = { help, run }

async function run(args: string[], { terminal }: Surroundings): Promise<number> {
  const flags = readFlags('emulator', args, flagTypes)
  const ports = { port: portOf('--port', flags.port), page: portOf('--page-port', flags['page-port']) }
  const callbackCa = await contentOf('--callback-ca', flags['callback-ca'])
  const folder = flags.state === undefined ? await StateFolder.temporary() : await openFree(flags.state)
  try {
    const state = await folder.load()
    const emulator = await start({
      ...(state && { clientSecret: state.clientSecret, password: state.password }),
      ...reusableCertificate(state),
      port: ports.port ?? state?.port ?? 0,
      host: flags.host,
      page: { port: ports.page ?? 0 },
      callbackCa,
      allowInsecureLoopback: flags['allow-insecure-loopback'],
    })
    // From here on a signal ends the emulator in order: without a listener it would end the process at once.
    const ended = waitForEnd()
    try {
      await remember(folder, emulator)
      announce(terminal, emulator, folder.caFile)
      printEvents(emulator, terminal)
      const signal = await ended
      terminal.line(`${signal}: closing the emulator, its page and all connections …`)
    } finally {
      await emulator.close()
    }
  } finally {
    await folder.release()
  }
  terminal.event('closed', {})
  terminal.line('Closed.')
  return 0
}

const flagTypes = {
  port: { type: 'string' },
  host: { type: 'string' },
  'page-port': { type: 'string' },
  state: { type: 'string' },
  'callback-ca': { type: 'string' },
  'allow-insecure-loopback': { type: 'boolean' },
  json: { type: 'boolean' },
} as const

/** The flag behind each option of `startEmulator` that a problem may name. */
const flagOf: Readonly<Record<string, string>> = {
  port: '--port',
  host: '--host',
  'page.port': '--page-port',
  callbackCa: '--callback-ca',
}

async function start(options: EmulatorOptions): Promise<Emulator> {
  // Loaded only now, so that a wrong flag, or a question for help, does not wait for the emulator. By the package's
  // name, so that the build does not copy the emulator into the command line.
  const { startEmulator } = await import('notification-subscriber/emulator')
  try {
    return await startEmulator(options)
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    const problems = error.issues.map(({ path, message }) => {
      const option = path.join('.')
      return `${flagOf[option] ?? option} ${message}`
    })
    throw new UsageError(problems.join('; '))
  }
}

/** Refuses a folder that a running emulator has: two of them would overwrite each other's certificate. */
async function openFree(path: string): Promise<StateFolder> {
  const folder = await StateFolder.open(path)
  const pageUrl = await folder.pageUrl()
  if (pageUrl !== undefined && (await isAnswered(pageUrl))) {
    throw new UsageError(
      `--state names ${folder.path}, which an emulator uses already: its page is ${pageUrl}`,
    )
  }
  return folder
}

async function isAnswered(pageUrl: string): Promise<boolean> {
  try {
    const answer = await fetch(pageUrl, { signal: AbortSignal.timeout(2_000) })
    await answer.body?.cancel()
    return answer.ok
  } catch {
    return false
  }
}

async function remember(folder: StateFolder, emulator: Emulator): Promise<void> {
  const { clientSecret, password, tls, ca, pageUrl, baseUrl } = emulator
  await folder.save({ port: Number(new URL(baseUrl).port), clientSecret, password, tls, ca })
  if (pageUrl !== undefined) await folder.setPageUrl(pageUrl)
}

function announce(terminal: Terminal, emulator: Emulator, caFile: string): void {
  const { baseUrl, authUrl, domain, clientId, clientSecret, pageUrl } = emulator
  terminal.event('listening', { baseUrl, authUrl, domain, clientId, clientSecret, caFile, pageUrl })
  const variables = {
    NOTIFICATION_BASE_URL: baseUrl,
    NOTIFICATION_AUTH_URL: authUrl,
    NOTIFICATION_DOMAIN: domain,
    NOTIFICATION_CLIENT_ID: clientId,
    NOTIFICATION_CLIENT_SECRET: clientSecret,
    NOTIFICATION_CA_FILE: caFile,
  }
  terminal.line(terminal.paint('bold', 'The emulator is running. For .env:'))
  terminal.line()
  for (const [name, value] of Object.entries(variables)) terminal.line(`${name}=${quoted(value)}`)
  terminal.line()
  terminal.line(`Page:   ${terminal.paint('cyan', `${pageUrl}`)}`)
  terminal.line(`Ctrl-C  ends it.`)
  terminal.line()
}

/** A value as `node --env-file`, dotenv and shells read it. */
function quoted(value: string): string {
  if (/^[\w./:@%+=,-]*$/.test(value)) return value
  return value.includes("'") ? `"${value}"` : `'${value}'`
}
