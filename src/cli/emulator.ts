/** `notification-subscriber emulator`: runs the emulator until a signal ends it. */
import { randomBytes } from 'node:crypto'
import type { Emulator, EmulatorOptions } from '../emulator/index.js'
import { clientVariables } from '../emulator/words.js'
import { ConfigurationError } from '../errors.js'
import { certificatesOf, commandOf, UsageError } from './command.js'
import { envFileAt, envLines, type Variables, writeEnvFile } from './env-file.js'
import { printEvents } from './event-lines.js'
import { onInterruption } from './signals.js'
import { askPage, reusableCertificate, StateFolder } from './state-folder.js'
import type { Terminal } from './terminal.js'

export const emulatorCommand = commandOf({
  name: 'emulator',
  help: `Usage: notification-subscriber emulator [flags]

Runs the notification service on this machine: HTTPS, signed tokens, real callbacks, and a page in the browser that
shows them. Prints the lines for .env, or the file that they were written into, and the page's address, then one line
for each event. Ctrl-C ends it.

  --port N                    port of the service; default: any free one, with --state the port of the last start
  --host ADDRESS              address to listen on, such as 0.0.0.0 in a container; default 127.0.0.1.
                              The page stays on 127.0.0.1
  --page-port N               port of the page; default: any free one
  --state DIR                 keep credentials, port and certificate in this folder for the next start
  --write-env FILE            write the lines for .env into a file of its own; node takes --env-file twice
  --callback-ca FILE          certificates in PEM to trust on callbacks
  --allow-insecure-loopback   accept callback URLs with http: on loopback
  --json                      one JSON object a line; the first has the event "listening"`,
  flags: {
    texts: ['port', 'host', 'page-port', 'state', 'write-env', 'callback-ca'],
    switches: ['allow-insecure-loopback'],
  },
  async run({ flags, terminal }) {
    const callbackCa = await certificatesOf('--callback-ca', flags['callback-ca'])
    const envFile = flags['write-env'] && (await envFileAt(flags['write-env']))
    // Listens for signals before it writes, so that a signal does not end the process halfway.
    const interrupted = untilInterrupted()
    const folder = await (flags.state === undefined ? StateFolder.temporary() : StateFolder.open(flags.state))
    const state = await folder.load()
    await refuseUsedFolder(folder, state?.pageUrl)
    try {
      const callbackToken = state?.callbackToken ?? randomBytes(24).toString('base64url')
      await using emulator = await start(folder, {
        clientSecret: state?.clientSecret,
        password: state?.password,
        ...reusableCertificate(state),
        port: Number(flags.port ?? state?.port ?? 0),
        host: flags.host,
        page: {
          port: Number(flags['page-port'] ?? 0),
          environment: { NOTIFICATION_CA_FILE: folder.caFile, CALLBACK_TOKEN: callbackToken },
        },
        callbackCa,
        allowInsecureLoopback: flags['allow-insecure-loopback'],
      })
      const { clientSecret, password, tls, ca, pageUrl, baseUrl } = emulator
      const port = Number(new URL(baseUrl).port)
      await folder.save({ port, clientSecret, password, callbackToken, tls, ca, pageUrl })
      const variables = { ...clientVariables(emulator, folder.caFile), CALLBACK_TOKEN: callbackToken }
      if (envFile !== undefined) await writeEnvFile(envFile, variables)
      announce(terminal, emulator, variables, envFile)
      printEvents(emulator, terminal)
      terminal.line(`${await interrupted}: closing the emulator, its page and all connections …`)
    } finally {
      await folder.release()
    }
    terminal.event('closed', {})
    terminal.line('Closed.')
    return 0
  },
})

/** The flag behind each option of `startEmulator` that a problem may name. */
const flagOf: Readonly<Record<string, string>> = {
  port: '--port',
  host: '--host',
  'page.port': '--page-port',
  callbackCa: '--callback-ca',
}

async function start(folder: StateFolder, options: EmulatorOptions): Promise<Emulator> {
  // Loaded late, so that `--help` and a wrong flag do not wait for the emulator. By the package's name, so that the
  // build does not copy the emulator into the command line.
  const { startEmulator } = await import('notification-subscriber/emulator')
  try {
    return await startEmulator(options)
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    const problems = error.issues.map(({ path, message }) => {
      const option = path.join('.')
      // What no flag sets comes from the file.
      return `${flagOf[option] ?? `${folder.stateFile} cannot be used, delete it: ${option}`} ${message}`
    })
    throw new UsageError(problems.join('; '))
  }
}

/** Refuses the folder of a running emulator: two emulators would overwrite each other's certificate. */
async function refuseUsedFolder({ path }: StateFolder, pageUrl: string | undefined): Promise<void> {
  if (pageUrl === undefined || !(await isAnswered(pageUrl))) return
  throw new UsageError(
    `--state names ${path}, which another emulator uses: its page is ${pageUrl}. ` +
      'End that emulator, or name another folder',
  )
}

async function isAnswered(pageUrl: string): Promise<boolean> {
  try {
    const answer = await askPage(pageUrl, { signal: AbortSignal.timeout(2_000) })
    await answer.body?.cancel()
    return answer.ok
  } catch {
    return false
  }
}

function untilInterrupted(): Promise<string> {
  return new Promise((resolve) => {
    onInterruption(({ by }) => resolve(by))
    // A reader such as `head` ended. Without this listener the next line would end the process before the emulator closes.
    process.stdout.on('error', () => resolve('The output was closed'))
  })
}

function announce(
  terminal: Terminal,
  emulator: Emulator,
  variables: Variables,
  envFile: string | undefined,
): void {
  const { baseUrl, authUrl, domain, clientId, clientSecret, pageUrl } = emulator
  const { NOTIFICATION_CA_FILE: caFile, CALLBACK_TOKEN: callbackToken } = variables
  const listening = { baseUrl, authUrl, domain, clientId, clientSecret, caFile, callbackToken, pageUrl }
  terminal.event('listening', { ...listening, envFile })
  const where = envFile === undefined ? 'For .env:' : `${envFile} has the variables for your app:`
  const lines = envFile === undefined ? envLines(variables) : [`node --env-file=${envFile} app.mjs`]
  const title = terminal.paint('bold', `The emulator is running. ${where}`)
  const page = `Page:   ${terminal.paint('cyan', `${pageUrl}`)}`
  for (const line of [title, '', ...lines, '', page, 'Ctrl-C  ends it.', '']) terminal.line(line)
}
