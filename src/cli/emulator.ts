/** `notification-subscriber emulator`: runs the emulator until a signal ends it. */
import { join, resolve } from 'node:path'
import { areReusable } from '../emulator/https/certificate.js'
import { randomSecret } from '../emulator/options.js'
import { clientVariables } from '../emulator/words.js'
import { ConfigurationError } from '../errors.js'
import { type CommandContext, certificatesOf, type SharedFlags, UsageError } from './command.js'
import { printEvents } from './event-lines.js'
import { untilInterrupted } from './signals.js'
import { loadState, saveState, serverOf } from './state.js'

interface EmulatorFlags extends SharedFlags {
  readonly state: string
  readonly host: string
  readonly port?: number
  readonly pagePort?: number
  readonly callbackCa?: string
}

export async function emulate({ terminal }: CommandContext, flags: EmulatorFlags): Promise<number> {
  const { state: folder, host } = flags
  const callbackCa = await certificatesOf('--callback-ca', flags.callbackCa)
  const interrupted = untilInterrupted()
  const earlier = await loadState(folder)
  if (earlier !== undefined && (await serverOf(earlier)) === 'emulator') {
    throw new UsageError(
      `An emulator is running with ${folder} already: use it, or name another folder with --state`,
    )
  }
  const callbackToken = earlier?.callbackToken ?? randomSecret()
  const [caFile, envFile] = [resolve(folder, 'ca.pem'), join(folder, 'env')]
  const own = { NOTIFICATION_CA_FILE: caFile, CALLBACK_TOKEN: callbackToken }
  // Loaded late, so that `--help` and a wrong flag do not wait for the emulator. By the package's name, so that the
  // build does not copy the emulator into the command line.
  const { startEmulator } = await import('notification-subscriber/emulator')
  await using emulator = await startEmulator({
    clientSecret: earlier?.clientSecret,
    ...(earlier && areReusable(earlier, host) && { tls: earlier.tls, ca: earlier.ca }),
    port: flags.port ?? (earlier && Number(new URL(earlier.baseUrl).port)),
    host,
    page: { port: flags.pagePort, environment: own, envFile },
    callbackCa,
  }).catch((error) => throwAboutFlags(error))

  const { baseUrl, authUrl, domain, clientId, clientSecret, tls, ca, pageUrl = '' } = emulator
  const kept = { baseUrl, clientSecret, callbackToken, tls, ca, pageUrl }
  const isReadableByOthers = await saveState(folder, kept, { ...clientVariables(emulator, caFile), ...own })
  const addresses = { baseUrl, authUrl, domain, pageUrl, caFile, envFile: resolve(envFile) }
  const running = terminal.paint('bold', `The emulator is running at ${baseUrl}`)
  terminal.event(
    'listening',
    { ...addresses, clientId, clientSecret, callbackToken },
    `${running}, and wrote ${envFile}. Next: node --env-file=${envFile} app.mjs`,
    `Its page: ${terminal.paint('cyan', pageUrl)}  Ctrl-C ends it.`,
  )
  if (isReadableByOthers) {
    const warning = `Other users of this machine can read the secrets in ${folder}: its file system keeps no modes.`
    terminal.line(terminal.paint('yellow', warning))
  }
  printEvents(emulator, terminal)
  terminal.line(`${await interrupted}: closing the emulator, its page and all connections …`)
  await emulator.close()
  terminal.event('closed', {}, 'Closed.')
  return 0
}

/** The options have the names of the flags. */
function throwAboutFlags(error: unknown): never {
  if (!(error instanceof ConfigurationError)) throw error
  const problems = error.issues.map(({ path, message }) => {
    const flag = path.join('-').replace(/[A-Z]/g, '-$&').toLowerCase()
    return `--${flag} ${message}`
  })
  throw new UsageError(problems.join('; '))
}
