/** The events of an emulator, as a line on the terminal or a line of JSON: never a header, a body or a secret. */
import type { Emulator, RecordedCallback, RecordedRequest, SubscriptionRecord } from '../emulator/index.js'
import { durationInWords, endReasons, toneOf } from '../emulator/words.js'
import { withoutQuery } from '../shared/addresses.js'
import { excerpt } from '../shared/text.js'
import type { Terminal } from './terminal.js'

const colours = { good: 'green', bad: 'red', neutral: 'cyan', waiting: 'yellow' } as const

export function printEvents(emulator: Emulator, terminal: Terminal): void {
  const print = (event: string, fields: object, ...parts: string[]) =>
    terminal.timed(event, fields, event.padEnd(8), ...parts)
  emulator.on('request', (request) => {
    const { id, startedAt, operation, method, status, error, durationMs, fault } = request
    const path = withoutSecret(request.path)
    const fields = { id, startedAt, operation, method, path, status, error, durationMs, fault }
    print('request', fields, method, path, outcomeOf(terminal, request))
  })
  emulator.on('callback', (callback) => {
    const { id, startedAt, subscriptionId, status, error, durationMs, fault } = callback
    const callbackUrl = withoutSecret(callback.callbackUrl)
    const fields = { id, startedAt, subscriptionId, callbackUrl, status, error, durationMs, fault }
    print('callback', fields, `${subscriptionId} → ${callbackUrl}`, outcomeOf(terminal, callback))
  })
  emulator.on('created', (subscription) => {
    const { subscriptionId, notificationTypes, usernames } = subscription
    const what = `${notificationTypes.join(',')} of ${excerpt(usernames.join(','), 60)}`
    const where = withoutSecret(subscription.callbackUrl)
    const id = terminal.paint('green', `${subscriptionId}`)
    print('created', fieldsOf(subscription), id, `${what} → ${where}`)
  })
  emulator.on('ended', (subscription, reason) => {
    const colour = reason === 'three-failures' ? 'red' : 'yellow'
    const id = terminal.paint(colour, `${subscription.subscriptionId}`)
    print('ended', { ...fieldsOf(subscription), reason }, id, endReasons[reason])
  })
}

function outcomeOf(terminal: Terminal, sent: RecordedRequest | RecordedCallback): string {
  const { status, error, durationMs, fault } = sent
  const outcome = status === undefined ? excerpt(error ?? 'no answer', 200) : `${status}`
  const refusal = 'refusal' in sent ? sent.refusal?.code : undefined
  const notes = [durationInWords(durationMs ?? 0), refusal, fault && 'injected fault'].filter(Boolean)
  return `${terminal.paint(colours[toneOf(sent)], outcome)}  ${terminal.paint('dim', notes.join(', '))}`
}

/** The values of the parameters are left out, because one of them is the receiver's secret. */
function fieldsOf({ parameters, ...subscription }: SubscriptionRecord): object {
  const callbackUrl = withoutSecret(subscription.callbackUrl)
  return { ...subscription, callbackUrl, parameterNames: Object.keys(parameters) }
}

/** An address on one line, without its query, which may hold a secret. */
function withoutSecret(address: string): string {
  return excerpt(withoutQuery(address), 300)
}
