/** `notification-subscriber emulator`: runs the emulator until a signal ends it. */
import { randomBytes } from 'node:crypto'
import { clientVariables } from '../emulator/words.js'
import { ConfigurationError } from '../errors.js'
import { certificatesOf, commandOf, UsageError } from './command.js'
import { printEvents } from './event-lines.js'
import { onInterruption } from './signals.js'
import {
  caFileIn,
  defaultFolder,
  type EmulatorState,
  envFileIn,
  loadState,
  reusableCertificate,
  saveState,
} from './state.js'

export const emulatorCommand = commandOf({
  name: 'emulator',
  help: `Usage: notification-subscriber emulator [flags]

Runs the notification service on this machine: HTTPS, signed tokens, real callbacks, and a page in the browser that
shows them. Writes the variables for your app into a file, and prints one line for each event. Ctrl-C ends it.

  --state DIR                 folder for the file, and for credentials, port and certificate of the next start;
                              default ${defaultFolder}
  --port N                    port of the service; default: that of the last start, or any free one
  --host ADDRESS              address to listen on, such as 0.0.0.0 in a container; default 127.0.0.1.
                              The page stays on 127.0.0.1
  --page-port N               port of the page; default: any free one
  --callback-ca FILE          certificates in PEM to trust on callbacks
  --json                      one JSON object a line; the first has the event "listening"`,
  flags: {
    texts: ['port', 'host', 'page-port', 'state', 'callback-ca'],
  },
  async run({ flags, terminal }) {
    const { state: folder = defaultFolder } = flags
    const callbackCa = await certificatesOf('--callback-ca', flags['callback-ca'])
    const interrupted = untilInterrupted()
    const earlier = await loadState(folder)
    const callbackToken = earlier?.callbackToken ?? randomBytes(24).toString('base64url')
    const own = { NOTIFICATION_CA_FILE: caFileIn(folder), CALLBACK_TOKEN: callbackToken }
    // Loaded late, so that `--help` and a wrong flag do not wait for the emulator. By the package's name, so that the
    // build does not copy the emulator into the command line.
    const { startEmulator } = await import('notification-subscriber/emulator')
    await using emulator = await startEmulator({
      clientSecret: earlier?.clientSecret,
      password: earlier?.password,
      ...reusableCertificate(earlier),
      port: Number(flags.port ?? earlier?.port ?? 0),
      host: flags.host,
      page: { port: Number(flags['page-port'] ?? 0), environment: own, envFile: envFileIn(folder) },
      callbackCa,
    }).catch((error) => throwAboutFlags(error, folder))

    const { baseUrl, authUrl, domain, clientId, clientSecret, password, tls, ca, pageUrl = '' } = emulator
    const port = Number(new URL(baseUrl).port)
    const state: EmulatorState = { port, clientSecret, password, callbackToken, tls, ca, pageUrl }
    await saveState(folder, state, { ...clientVariables(emulator, caFileIn(folder)), ...own })
    const [caFile, envFile] = [caFileIn(folder), envFileIn(folder)]
    const listening = {
      baseUrl,
      authUrl,
      domain,
      clientId,
      clientSecret,
      caFile,
      callbackToken,
      pageUrl,
      envFile,
    }
    terminal.event('listening', listening)
    terminal.line(terminal.paint('bold', `The emulator is running at ${baseUrl}.`))
    terminal.line()
    terminal.line(`Your app:  node --env-file=${envFile} app.mjs`)
    terminal.line(`Page:      ${terminal.paint('cyan', pageUrl)}`)
    terminal.line('Ctrl-C  ends it.')
    terminal.line()
    printEvents(emulator, terminal)
    terminal.line(`${await interrupted}: closing the emulator, its page and all connections …`)
    await emulator.close()
    terminal.event('closed', {})
    terminal.line('Closed.')
    return 0
  },
})

function throwAboutFlags(error: unknown, folder: string): never {
  if (!(error instanceof ConfigurationError)) throw error
  // The options are named as the flags are. What no flag sets comes from the folder.
  const problems = error.issues.map(({ path, message }) => {
    const flag = path.join('-').replace(/[A-Z]/g, '-$&').toLowerCase()
    return /^(port|host|page-port|callback-ca)$/.test(flag)
      ? `--${flag} ${message}`
      : `${folder}/state.json cannot be used, delete it: ${path.join('.')} ${message}`
  })
  const isTaken = error.issues.some(({ message }) => message.includes('is taken'))
  const hint = isTaken ? `. Does another emulator use ${folder}? --state names another folder` : ''
  throw new UsageError(problems.join('; ') + hint)
}

function untilInterrupted(): Promise<string> {
  return new Promise((resolve) => {
    onInterruption(({ by }) => resolve(by))
    // A reader such as `head` ended. Without this listener the next line would end the process before the emulator closes.
    process.stdout.on('error', () => resolve('The output was closed'))
  })
}
