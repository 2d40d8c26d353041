/** `notification-subscriber spool`: the dead letters of a spool. */
import * as fs from 'node:fs/promises'
import { resolve } from 'node:path'
import { ConfigurationError, NotificationError } from '../errors.js'
import { messageOf } from '../shared/text.js'
import { formatIssues } from '../shared/validation.js'
import { type DeadLetter, DeadLetters } from '../spool/dead-letters.js'
import { openFolder } from '../spool/delivery-spool.js'
import { SpoolFolder } from '../spool/folder.js'
import { parseName } from '../spool/format.js'
import { reportsOf } from '../spool/spool-options.js'
import { parseDelivery } from '../webhooks/parse.js'
import { CommandFailure, commandOf, UsageError } from './command.js'
import type { Terminal } from './terminal.js'

export const spoolCommand = commandOf({
  name: 'spool',
  help: `Usage: notification-subscriber spool PATH ACTION [flags]

Shows the dead letters in the folder of a spool, and what becomes of them (docs/spool.md, Dead letters).

  list         one line for each: ID, when it was received, and why it is a dead letter
  show ID      why it is a dead letter, and its body
  retry ID     puts it back: the next process that opens the spool delivers it
  discard ID   removes it

  --json       one JSON object for each dead letter, with the event "dead-letter"

list and show also work while a process has the folder open. retry and discard do not: call spool.retry(ID) and
spool.discard(ID) there.`,
  flags: {},
  takesWords: true,
  async run({ words, terminal }) {
    const [folder, action = 'list', given, ...others] = words
    const isKnown = ['list', 'show', 'retry', 'discard'].includes(action)
    if (
      folder === undefined ||
      !isKnown ||
      others.length > 0 ||
      (action === 'list') !== (given === undefined)
    ) {
      throw new UsageError(
        'Name a folder, and then list, show ID, retry ID or discard ID: notification-subscriber spool --help',
      )
    }
    const path = resolve(folder)
    const letters = await lettersIn(path)
    if (action === 'list') {
      for (const each of letters.ids) print(terminal, await letters.read(each))
      if (letters.ids.length === 0) terminal.line(`There is no dead letter in ${path}.`)
      return 0
    }
    const id = Number(given)
    const letter = await letters.read(id)
    if (letter === undefined)
      throw new CommandFailure(
        `There is no dead letter ${given} in ${path}. See: notification-subscriber spool ${folder} list`,
      )
    if (action === 'show') {
      print(terminal, letter)
      terminal.line(letter.bodyText)
      return 0
    }
    await change(path, action, id)
    terminal.event(action, { id })
    const done = action === 'retry' ? 'waits for the next process that opens the spool' : 'is removed'
    terminal.success(`${id} ${done}.`)
    return 0
  },
})

/** The letters in a folder that another process may have open: changes nothing. */
async function lettersIn(path: string): Promise<DeadLetters> {
  const files = { ...fs, rename: async () => {} }
  const folder = new SpoolFolder(path, files, reportsOf(path, undefined))
  const letters = new DeadLetters(folder)
  const listed = await folder.list().catch((error) => {
    throw new UsageError(`The folder ${path} cannot be read: ${messageOf(error)}`)
  })
  for (const { name } of listed) {
    const fields = parseName(name)
    if (typeof fields === 'object' && fields.kind !== 'open' && fields.kind !== 'closed')
      letters.track(fields)
  }
  return letters
}

function print(terminal: Terminal, letter: DeadLetter | undefined): void {
  // Damage is on standard error.
  if (letter === undefined) return
  const { id, receivedAt, reason, issues, error, bodyText } = letter
  const why = error ? `${error.name}: ${error.message}` : formatIssues(issues ?? [])
  terminal.line(`${id}  ${new Date(receivedAt).toISOString()}  ${reason}  ${why}`)
  terminal.event('dead-letter', { id, receivedAt, reason, issues, error, bodyText })
}

async function change(path: string, action: string, id: number): Promise<void> {
  try {
    const { store, lock } = await openFolder({ path })
    try {
      await (action === 'retry' ? store.retry(id, parseDelivery) : store.letters.remove(id))
      await store.close()
    } finally {
      // If an earlier process ended unexpectedly, the next one still has to know.
      await lock.release(lock.inFlightBefore)
    }
  } catch (error) {
    if (!(error instanceof NotificationError)) throw error
    const { code, message } = error
    if (!(error instanceof ConfigurationError)) throw new CommandFailure(`✘ ${code}: ${message}`)
    const advice = `call spool.${action}(${id}) there, or stop it`
    throw new UsageError(`A process may have ${path} open: ${advice}. ${message}`)
  }
}
