/** `notification-subscriber notify`: sends a notification through the server of a running emulator's page. */
import type { NotifyAnswer } from '../emulator/page/actions.js'
import type { Issue } from '../errors.js'
import { notificationTypes } from '../notification-types.js'
import { parsedUrl } from '../shared/addresses.js'
import { isAbsent, isOk, isUnauthorized } from '../shared/statuses.js'
import { excerpt, messageOf } from '../shared/text.js'
import { commandOf, required, UsageError } from './command.js'
import { defaultFolder, loadState } from './state.js'
import type { Terminal } from './terminal.js'

export const notifyCommand = commandOf({
  name: 'notify',
  help: `Usage: notification-subscriber notify --type T --user U [flags]

Sends a notification through a running emulator, to every subscription for the user and the category. Exit code 1 if
there is no such subscription, or if a callback failed.

  --type T          e.g. lowEnergyAgentOpened
  --user U          the user (agent) that the notification is about
  --category C      ${notificationTypes.join(', ')}; default: the one that brings T
  --payload JSON    default: the documented payload, or an empty one where none is documented
  --state DIR       the folder of the emulator; default ${defaultFolder}
  --page-url URL    instead of the folder: the address of the emulator's page
  --json            one JSON object for each callback, with the event "callback"`,
  flags: { texts: ['type', 'user', 'category', 'payload', 'state', 'page-url'] },
  async run({ flags, terminal }) {
    const { category, payload, state: folder = defaultFolder } = flags
    const type = required('--type', flags.type, 'name the notification to send')
    const username = required('--user', flags.user, 'name the user that the notification is about')
    const pageUrl = flags['page-url'] ?? (await loadState(folder))?.pageUrl
    const known = required('--page-url', pageUrl, `no emulator was started with --state ${folder}`)
    const answer = await post(known, { type, username, category, payload })
    print(terminal, `${excerpt(type, 80)} of ${excerpt(username, 80)}`, answer)
    return answer.results.length > 0 && answer.results.every(({ error }) => error === undefined) ? 0 : 1
  },
})

/** An emulator answers when its callbacks are done; each ends after at most 5 seconds. */
const timeoutMs = 60_000

async function post(pageUrl: string, notification: object): Promise<NotifyAnswer> {
  const url = parsedUrl(pageUrl)
  // Loopback only: the page is served only there, and its address is a secret.
  if (url?.protocol !== 'http:' || !['127.0.0.1', 'localhost'].includes(url.hostname)) {
    throw new UsageError('--page-url must be the address that the emulator printed: http://127.0.0.1:…/…/')
  }
  // Directly: with NODE_USE_ENV_PROXY, the `fetch` of Node.js asks a proxy for this machine, too.
  const { Agent, fetch } = await import('undici')
  const response = await fetch(new URL('api/notify', `${url.href.replace(/\/*$/, '')}/`), {
    dispatcher: new Agent(),
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url.origin },
    body: JSON.stringify(notification),
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((error: unknown) => {
    const { cause = error } = Object(error)
    const reason = messageOf(cause) || `${cause.code}`
    throw new UsageError(`No emulator answers at ${url.origin}: ${reason}. Is the emulator running?`)
  })
  const body: unknown = await response.json().catch(() => undefined)
  const { results, issues }: { results?: unknown; issues?: readonly Issue[] } = Object(body)
  if (isOk(response.status) && Array.isArray(results)) return body as NotifyAnswer
  if (Array.isArray(issues)) {
    const sentences = issues.map(({ path, message }) => `--${path.join('.')} ${excerpt(message, 300)}`)
    throw new UsageError(sentences.join('; ').replace('--username', '--user'))
  }
  const hint = isAbsent(response.status)
    ? 'this is the address of an earlier start: name the one that the emulator printed last'
    : 'is this the page of an emulator?'
  throw new UsageError(`${url.origin} answered ${response.status}: ${hint}`)
}

function print(terminal: Terminal, what: string, { results, subscribed }: NotifyAnswer): void {
  for (const result of results) {
    const { subscriptionId, callbackUrl, status, error, subscriptionEnded } = result
    terminal.event('callback', result)
    const mark = error === undefined ? terminal.paint('green', '✔') : terminal.paint('red', '✘')
    const outcome = error === undefined ? `answered ${status}` : excerpt(error, 300)
    const end = subscriptionEnded ? `. ${terminal.paint('yellow', 'The subscription has ended.')}` : ''
    terminal.line(
      `${mark} ${what} to subscription ${subscriptionId} at ${excerpt(callbackUrl, 200)}: ${outcome}${end}`,
    )
  }
  if (results.some(({ status }) => status !== undefined && isUnauthorized(status))) {
    terminal.line("  → See callback.refused in the receiver's log")
  } else if (results.some(({ error }) => error?.includes('certificate'))) {
    terminal.line('  → To trust the certificate, start the emulator with --callback-ca')
  }
  if (results.length > 0) return
  terminal.event('unsent', { subscribed })
  terminal.line(`${terminal.paint('red', '✘')} Nothing was sent: no subscription is for ${what}.`)
  terminal.line(
    subscribed.length > 0
      ? '  Subscribed are:'
      : '  There is no subscription at all: start your app, so that it subscribes.',
  )
  for (const { subscriptionId, usernames, notificationTypes: types } of subscribed) {
    terminal.line(`    ${subscriptionId}  ${excerpt(usernames.join(', '), 60)}: ${types.join(', ')}`)
  }
}
