/** `notification-subscriber notify`: sends a notification through the server of a running emulator's page. */
import { Agent, fetch } from 'undici'
import type { NotifyAnswer } from '../emulator/page/actions.js'
import type { Issue } from '../errors.js'
import { documentedNotificationTypes } from '../notification-types.js'
import { isUnauthorized } from '../shared/statuses.js'
import { excerpt, messageOf } from '../shared/text.js'
import { type CommandContext, type SharedFlags, UsageError } from './command.js'
import { loadState, serverOf } from './state.js'
import type { Terminal } from './terminal.js'

interface NotifyFlags extends SharedFlags {
  readonly type?: string
  readonly user?: string
  readonly category?: string
  readonly payload?: string
  readonly state: string
}

export async function notify({ terminal }: CommandContext, flags: NotifyFlags): Promise<number> {
  const { type, user: username, category, payload, state } = flags
  const pageUrl = await pageOf(state)
  const answer = await post(pageUrl, { type, username, category, payload })
  print(terminal, answer, pageUrl)
  return answer.results.length > 0 && answer.results.every(({ error }) => error === undefined) ? 0 : 1
}

const startOne = 'npx --no notification-subscriber emulator'

/** The page of the emulator that runs with the folder. Another server may have its port, and must not get its secret address. */
async function pageOf(folder: string): Promise<string> {
  const state = await loadState(folder)
  if (state === undefined) {
    throw new UsageError(
      `No emulator was started with ${folder}: run ${startOne}, or name its folder with --state`,
    )
  }
  const server = await serverOf(state)
  if (server === 'emulator') return state.pageUrl
  const other = server === 'other' ? ` Another server listens at ${state.baseUrl}.` : ''
  throw new UsageError(`The emulator of ${folder} is not running: run ${startOne}.${other}`)
}

/** An emulator answers when its callbacks are done; each ends after at most 5 seconds. */
const timeoutMs = 60_000

async function post(pageUrl: string, notification: object): Promise<NotifyAnswer> {
  // Directly: with NODE_USE_ENV_PROXY, the `fetch` of Node.js asks a proxy for this machine, too.
  const response = await fetch(new URL('api/notify', pageUrl), {
    dispatcher: new Agent(),
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: new URL(pageUrl).origin },
    body: JSON.stringify(notification),
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((error: unknown) => {
    throw new UsageError(`The emulator did not answer: ${messageOf(Object(error).cause ?? error)}`)
  })
  const body = await response.json()
  const { issues }: { issues?: readonly Issue[] } = Object(body)
  if (issues === undefined) return body as NotifyAnswer
  const sentences = issues.map(({ path, message }) => `--${path.join('.')} ${excerpt(message, 300)}`)
  throw new UsageError(sentences.join('; ').replace('--username', '--user'))
}

function print(terminal: Terminal, answer: NotifyAnswer, pageUrl: string): void {
  const { type, category, username, results, subscribed, message } = answer
  const cross = terminal.paint('red', '✘')
  for (const result of results) {
    const { subscriptionId, callbackUrl, status, error, subscriptionEnded } = result
    const mark = error === undefined ? terminal.paint('green', '✔') : cross
    const what = `${excerpt(type, 80)} of ${excerpt(username, 80)} to subscription ${subscriptionId}`
    const outcome = error === undefined ? `answered ${status}` : excerpt(error, 300)
    const end = subscriptionEnded ? `. ${terminal.paint('yellow', 'The subscription has ended.')}` : ''
    terminal.event('callback', result, `${mark} ${what} at ${excerpt(callbackUrl, 200)}: ${outcome}${end}`)
  }
  if (results.length === 0) {
    const next =
      subscribed.length === 0
        ? 'There is no subscription at all: start your app, or run npx --no notification-subscriber receive, which prints how to subscribe'
        : 'Subscribe to it, or choose --user and --type from these:'
    const lines = subscribed.map(({ subscriptionId, usernames, notificationTypes: types }) => {
      const brought = types.map((each) => `${each} (--type ${documentedNotificationTypes[each][0]})`)
      return `    ${subscriptionId}  ${excerpt(usernames.join(', '), 60)}: ${brought.join(', ')}`
    })
    terminal.event('unsent', { category, subscribed }, `${cross} ${message}`, `  → ${next}`, ...lines)
  } else if (results.some(({ status }) => status !== undefined && isUnauthorized(status))) {
    terminal.line("  → See callback.refused in the receiver's log")
  } else if (results.some(({ error }) => error?.includes('certificate'))) {
    terminal.line('  → To trust the certificate, start the emulator with --callback-ca')
  } else {
    terminal.line(`  → What was sent and answered: ${pageUrl}`)
  }
}
