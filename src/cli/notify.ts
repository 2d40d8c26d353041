/** `notification-subscriber notify`: sends a notification through the server of a running emulator's page. */

import type { NotifyAnswer } from '../emulator/page/actions.js'
import type { Issue } from '../errors.js'
import { notificationTypes } from '../notification-types.js'
import { parsedUrl } from '../shared/addresses.js'
import { isAbsent, isOk, isUnauthorized } from '../shared/statuses.js'
import { excerpt, messageOf } from '../shared/text.js'
import { parseJson } from '../shared/validation.js'
import { commandOf, type Flags, required, UsageError } from './command.js'
import { askPage, StateFolder } from './state-folder.js'
import type { Terminal } from './terminal.js'

const flagNames = { texts: ['type', 'user', 'category', 'payload', 'state', 'page-url'] } as const

export const notifyCommand = commandOf({
  name: 'notify',
  help: `Usage: notification-subscriber notify --type T --user U (--state DIR | --page-url URL) [flags]

Sends a notification through a running emulator, to every subscription for the user and the category. Exit code 1 if
there is no such subscription, or if a callback failed.

  --type T          e.g. lowEnergyAgentOpened
  --user U          the user (agent) that the notification is about
  --category C      ${notificationTypes.join(', ')}; default: the one that brings T
  --payload JSON    default: the documented payload, or an empty one where none is documented
  --state DIR       finds the emulator that was started with the same flag
  --page-url URL    the address of the page that the emulator printed
  --json            one JSON object for each callback, with the event "callback"`,
  flags: flagNames,
  async run({ flags, terminal }) {
    const notification = notificationOf(flags)
    const answer = await post(await pageUrlOf(flags), notification)
    printAnswer(terminal, notification, answer)
    const { results } = answer
    return results.length > 0 && results.every(({ error }) => error === undefined) ? 0 : 1
  },
})

/** The request to the page's server, which fills in missing fields and checks the rest. */
type Notification = ReturnType<typeof notificationOf>

function notificationOf({ type, user, category, payload }: Flags<typeof flagNames>) {
  return {
    type: required('--type', type, 'name the notification to send'),
    username: required('--user', user, 'name the user that the notification is about'),
    category,
    payload: payload === undefined ? undefined : payloadOf(payload),
  }
}

function payloadOf(text: string): object {
  const payload = parseJson(text)
  if (typeof payload === 'object' && payload !== null && !Array.isArray(payload)) return payload
  throw new UsageError('--payload must be a JSON object, such as \'{"score":4.2}\'')
}

async function pageUrlOf({ state, 'page-url': pageUrl }: Flags<typeof flagNames>): Promise<URL> {
  if ((state === undefined) === (pageUrl === undefined)) {
    throw new UsageError(
      'Name the emulator: --state with its folder, or --page-url with the address of its page',
    )
  }
  if (pageUrl !== undefined) return loopbackUrl(pageUrl)
  const folder = await StateFolder.existing(state ?? '')
  const running = await folder.load()
  if (running?.pageUrl !== undefined) return loopbackUrl(running.pageUrl)
  throw new UsageError(
    `No emulator runs with --state ${folder.path}: start one with notification-subscriber emulator --state ${folder.path}`,
  )
}

/** Loopback only: the page is served only there, and its address is a secret. */
function loopbackUrl(text: string): URL {
  const url = parsedUrl(text)
  if (url?.protocol !== 'http:' || !['127.0.0.1', 'localhost'].includes(url.hostname)) {
    throw new UsageError('--page-url must be the address that the emulator printed: http://127.0.0.1:…/…/')
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}

/** An emulator answers when its callbacks are done; each ends after at most 5 seconds. */
const answerTimeoutMs = 60_000

async function post(pageUrl: URL, notification: Notification): Promise<NotifyAnswer> {
  const signal = AbortSignal.timeout(answerTimeoutMs)
  let status: number
  let body: unknown
  try {
    const response = await askPage(new URL('api/notify', pageUrl), {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: pageUrl.origin },
      body: JSON.stringify(notification),
      redirect: 'error',
      signal,
    })
    status = response.status
    body = await response.json()
  } catch (error) {
    if (signal.aborted) {
      throw new UsageError(
        `${pageUrl.origin} did not answer within ${answerTimeoutMs / 1_000} s: is this the page of an emulator? ` +
          'If so, look there for the callbacks that were slow',
      )
    }
    const { cause = error } = Object(error)
    const reason = messageOf(cause) || `${cause.code}`
    throw new UsageError(`No emulator answers at ${pageUrl.origin}: ${reason}. Is the emulator running?`)
  }
  if (isOk(status) && isAnswer(body)) return body
  const { issues }: { issues?: readonly Issue[] } = Object(body)
  if (Array.isArray(issues) && issues.length > 0) {
    const sentences = issues.map(({ path, message }) =>
      `${flagOf(path)} ${excerpt(message, 300)}`.trimStart(),
    )
    throw new UsageError(sentences.join('; '))
  }
  if (isAbsent(status)) {
    throw new UsageError(
      `--page-url ${pageUrl.origin}/… is the address of an earlier start: name the one that the emulator printed last`,
    )
  }
  throw new UsageError(`${pageUrl.origin} answered ${status}: is this the page of an emulator?`)
}

function isAnswer(body: unknown): body is NotifyAnswer {
  const { results, subscribed }: Partial<NotifyAnswer> = Object(body)
  return Array.isArray(results) && Array.isArray(subscribed)
}

/** The flag that sets a field of the notification. */
function flagOf([field, ...below]: Issue['path']): string {
  if (field === undefined) return ''
  return [field === 'username' ? '--user' : `--${String(field)}`, ...below].join('.')
}

/** What to do after callbacks that failed, if their errors say it. */
function nextAfter(results: NotifyAnswer['results']): string | undefined {
  if (results.some(({ status }) => status !== undefined && isUnauthorized(status))) {
    return "See callback.refused in the receiver's log"
  }
  return results.some(({ error }) => /certificate/.test(error ?? ''))
    ? 'To trust the certificate, start the emulator with --callback-ca'
    : undefined
}

function printAnswer(
  terminal: Terminal,
  { type, username, category }: Notification,
  { results, subscribed }: NotifyAnswer,
): void {
  for (const { subscriptionId, callbackUrl, status, error, subscriptionEnded } of results) {
    terminal.event('callback', { subscriptionId, callbackUrl, status, error, subscriptionEnded })
    const mark = error === undefined ? terminal.paint('green', '✔') : terminal.paint('red', '✘')
    const outcome = error === undefined ? `answered ${status}` : excerpt(error, 300)
    const end = subscriptionEnded ? `. ${terminal.paint('yellow', 'The subscription has ended.')}` : ''
    terminal.line(
      `${mark} ${type} to subscription ${subscriptionId} at ${excerpt(callbackUrl, 200)}: ${outcome}${end}`,
    )
  }
  const next = nextAfter(results)
  if (next !== undefined) terminal.line(`  → ${next}`)
  if (results.length > 0) return
  terminal.event('unsent', { type, username, category, subscribed })
  const wanted = `${excerpt(type, 80)} of ${excerpt(username, 80)}`
  terminal.line(`${terminal.paint('red', '✘')} Nothing was sent: no subscription is for ${wanted}.`)
  if (subscribed.length === 0) {
    terminal.line('  There is no subscription at all: start your app, so that it subscribes.')
    return
  }
  terminal.line('  Subscribed are:')
  for (const { subscriptionId, usernames, notificationTypes: types } of subscribed) {
    terminal.line(`    ${subscriptionId}  ${excerpt(usernames.join(', '), 60)}: ${types.join(', ')}`)
  }
}
