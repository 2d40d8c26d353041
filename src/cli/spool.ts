/** `notification-subscriber spool`: what waits in the folder of a spool, and its dead letters. */
import { readdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { durationInWords } from '../emulator/words.js'
import { ConfigurationError, NotificationError } from '../errors.js'
import { messageOf } from '../shared/text.js'
import { formatIssues } from '../shared/validation.js'
import { type DeadLetter, letterIn } from '../spool/dead-letters.js'
import { ifGone } from '../spool/folder.js'
import { parseName, placesIn } from '../spool/format.js'
import { openStore } from '../spool/spool-store.js'
import { parseDelivery } from '../webhooks/parse.js'
import { type CommandContext, CommandFailure, UsageError } from './command.js'
import type { Terminal } from './terminal.js'

export async function spool(
  { terminal }: CommandContext,
  folder: string,
  action: 'list' | 'show' | 'retry' | 'discard',
  id: number | undefined,
): Promise<number> {
  if ((action === 'list') !== (id === undefined)) {
    throw new UsageError(action === 'list' ? 'list takes no ID' : `${action} needs the ID of a dead letter`)
  }
  const path = resolve(folder)
  const found = await readSpool(path)
  if (id === undefined) {
    const { received, letters, damaged } = found
    const waiting = received.length
    const oldestReceivedAt = received.reduce((oldest, each) => Math.min(oldest, each), Date.now())
    const age = waiting > 0 ? `, the oldest for ${durationInWords(Date.now() - oldestReceivedAt)}` : ''
    const fields = { waiting, ...(waiting > 0 && { oldestReceivedAt }), damaged }
    terminal.event('spool', fields, `Waiting: ${waiting}${age}. Dead letters: ${letters.length}.`)
    for (const letter of letters) print(terminal, letter)
    for (const name of damaged) terminal.line(`${terminal.paint('red', '✘')} ${name} is damaged.`)
    return 0
  }
  const letter = found.letters.find((each) => each.id === id)
  if (letter === undefined) {
    const next = `See: npx --no notification-subscriber spool ${folder} list`
    throw new CommandFailure(`There is no dead letter ${id} in ${path}. ${next}`)
  }
  if (action === 'show') {
    print(terminal, letter)
    terminal.line(letter.bodyText)
    return 0
  }
  await change(path, action, id)
  const done = action === 'retry' ? 'waits for the next process that opens the spool' : 'is removed'
  terminal.success(action, { id }, `${id} ${done}.`)
  return 0
}

/** What a folder holds that another process may have open: changes nothing. */
async function readSpool(path: string) {
  const names = await readdir(path).catch((error) => {
    throw new UsageError(`The folder ${path} cannot be read: ${messageOf(error)}`)
  })
  if (names.length > 0 && names.every((name) => parseName(name) === 'unknown')) {
    throw new UsageError(
      `${path} holds no spool, but ${names[0]}: name the folder that the app gives its spool`,
    )
  }
  const received: number[] = []
  const letters: DeadLetter[] = []
  const damaged: string[] = []
  for (const name of names.sort()) {
    const fields = parseName(name)
    if (typeof fields !== 'object') continue
    // The running process may have removed the file meanwhile.
    const bytes = await readFile(join(path, name)).catch(ifGone(undefined))
    if (bytes === undefined) continue
    if (fields.kind === 'open' || fields.kind === 'closed') {
      // What looks damaged may be half written: the process that opens the spool reports damage.
      received.push(...placesIn(bytes, fields.id).places.map(({ receivedAt }) => receivedAt))
    } else {
      const { letter } = letterIn(bytes, fields)
      if (letter === undefined) damaged.push(name)
      else letters.push(letter)
    }
  }
  return { received, letters, damaged }
}

function print(terminal: Terminal, { id, receivedAt, reason, issues, error, bodyText }: DeadLetter): void {
  const why = error ? `${error.name}: ${error.message}` : formatIssues(issues ?? [])
  const fields = { id, receivedAt, reason, issues, error, bodyText }
  terminal.event('dead-letter', fields, `${id}  ${new Date(receivedAt).toISOString()}  ${reason}  ${why}`)
}

async function change(path: string, action: string, id: number): Promise<void> {
  try {
    const store = await openStore({ path })
    try {
      await (action === 'retry' ? store.retry(id, parseDelivery) : store.letters.remove(id))
    } finally {
      // If an earlier process ended unexpectedly, the next one must still learn what may have been in flight.
      await store.close(store.lock.inFlightBefore)
    }
  } catch (error) {
    if (!(error instanceof NotificationError)) throw error
    const { code, message } = error
    if (!(error instanceof ConfigurationError)) throw new CommandFailure(`✘ ${code}: ${message}`)
    const advice = `call spool.${action}(${id}) there, or stop it`
    throw new UsageError(`A process may have ${path} open: ${advice}. ${message}`)
  }
}
