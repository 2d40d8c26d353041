/** `notification-subscriber notify`: sends a notification through a running emulator, by its page's server. */
import * as z from 'zod'
import type { EmulatedNotification } from '../../emulator/callbacks/emulated-notification.js'
import { sampleNotification } from '../../emulator/callbacks/sample-notification.js'
import { InvalidRequestError } from '../../errors.js'
import { deliveredTypeProblem, type NotificationType, notificationTypes } from '../../notification-types.js'
import { excerpt, messageOf } from '../../shared/excerpt.js'
import type { Command, Surroundings } from '../command.js'
import { StateFolder } from '../emulator/state-folder.js'
import type { Terminal } from '../terminal.js'
import { readFlags, UsageError } from '../usage-error.js'

const help = `Usage: notification-subscriber notify --type T --user U (--state DIR | --page-url URL) [flags]

Sends a notification through a running emulator, to every subscription for the user and the category. Exit code 1 if
there is none, or if a callback failed.

  --type T          e.g. lowEnergyAgentOpened
  --user U          the user (agent) that it is about
  --category C      ${notificationTypes.join(', ')}; default: the one that brings T
  --payload JSON    default: the documented payload, or an empty one where none is documented
  --state DIR       finds the emulator that was started with the same flag
  --page-url URL    the address of the page that the emulator printed
  --json            one JSON object for each callback, with the event "callback"`

export const notifyCommand: Command = { help, run }

const answerSchema = z.object({
  results: z.array(
    z.object({
      subscriptionId: z.number(),
      callbackUrl: z.string(),
      status: z.number().optional(),
      error: z.string().optional(),
      subscriptionEnded: z.boolean(),
    }),
  ),
})
type Results = z.infer<typeof answerSchema>['results']

async function run(args: string[], { terminal }: Surroundings): Promise<number> {
  const flags = readFlags('notify', args, flagTypes)
  const notification = notificationOf(flags)
  const pageUrl = await pageUrlOf(flags)
  const results = await post(pageUrl, notification)
  printResults(terminal, notification, results)
  return results.length > 0 && results.every(({ error }) => error === undefined) ? 0 : 1
}

const flagTypes = {
  type: { type: 'string' },
  user: { type: 'string' },
  category: { type: 'string' },
  payload: { type: 'string' },
  state: { type: 'string' },
  'page-url': { type: 'string' },
  json: { type: 'boolean' },
} as const

type Flags = Partial<Record<Exclude<keyof typeof flagTypes, 'json'>, string>>

function notificationOf({ type, user, category, payload }: Flags): EmulatedNotification {
  if (!type) throw new UsageError('--type is missing: which notification is to be sent?')
  if (!user) throw new UsageError('--user is missing: whom is the notification about?')
  const overrides = {
    username: user,
    ...(category !== undefined && { category: categoryOf(category) }),
    ...(payload !== undefined && { payload: payloadOf(payload) }),
  }
  try {
    return sampleNotification(type, overrides)
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error
    throw new UsageError(error.issues.map(({ path, message }) => `--${path.join('.')} ${message}`).join('; '))
  }
}

function categoryOf(text: string): NotificationType {
  const category = notificationTypes.find((each) => each === text)
  if (category !== undefined) return category
  throw new UsageError(
    `--category ${deliveredTypeProblem(text) ?? `must be one of ${notificationTypes.join(', ')}`}`,
  )
}

function payloadOf(text: string): object {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text))
  } catch {
    throw new UsageError('--payload must be a JSON object, such as \'{"score":4.2}\'')
  }
}

async function pageUrlOf({ state, 'page-url': pageUrl }: Flags): Promise<URL> {
  if ((state === undefined) === (pageUrl === undefined)) {
    throw new UsageError(
      'Which emulator? Give --state with its folder, or --page-url with the address of its page',
    )
  }
  if (pageUrl !== undefined) return loopbackUrl(pageUrl)
  const folder = await StateFolder.open(state ?? '')
  const found = await folder.pageUrl()
  if (found !== undefined) return loopbackUrl(found)
  throw new UsageError(`No emulator runs with --state ${folder.path}: start one with the same flag`)
}

/** Loopback only: the page is never elsewhere, and its address is a secret that must not be sent to another host. */
function loopbackUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' || !['127.0.0.1', 'localhost'].includes(url.hostname)) {
    throw new UsageError('--page-url must be the address that the emulator printed: http://127.0.0.1:…/…/')
  }
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}

async function post(pageUrl: URL, notification: EmulatedNotification): Promise<Results> {
  const { request } = await import('undici')
  let status: number
  let answer: unknown
  try {
    const response = await request(new URL('api/notify', pageUrl), {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: pageUrl.origin },
      body: JSON.stringify(notification),
    })
    status = response.statusCode
    answer = await response.body.json()
  } catch (error) {
    throw new UsageError(`No emulator answers at ${pageUrl.origin}: ${reasonOf(error)}`)
  }
  const answered = answerSchema.safeParse(answer)
  if (status === 200 && answered.success) return answered.data.results
  const { message = `it answered with status ${status}` } = Object(answer)
  throw new UsageError(`The emulator refused: ${excerpt(String(message), 300)}`)
}

function reasonOf(error: unknown): string {
  return messageOf(error) || String(Object(error).code ?? 'no reason given')
}

function printResults(
  terminal: Terminal,
  { username, category, type }: EmulatedNotification,
  results: Results,
): void {
  for (const { subscriptionId, callbackUrl, status, error, subscriptionEnded } of results) {
    terminal.event('callback', { subscriptionId, callbackUrl, status, error, subscriptionEnded })
    const mark = error === undefined ? terminal.paint('green', '✔') : terminal.paint('red', '✘')
    const outcome = error === undefined ? `${status}` : excerpt(error, 300)
    const end = subscriptionEnded ? `. ${terminal.paint('yellow', 'The subscription has ended.')}` : ''
    terminal.line(`${mark} ${type} → ${subscriptionId} at ${excerpt(callbackUrl, 200)}: ${outcome}${end}`)
  }
  if (results.length > 0) return
  terminal.event('unsent', { username, category })
  terminal.line(
    `${terminal.paint('red', '✘')} Nothing was sent: there is no subscription of ${excerpt(username, 80)} for ${category}.`,
  )
}
