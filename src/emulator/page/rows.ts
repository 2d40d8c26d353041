/** The rows of the time line and of the subscriptions, and the words in them. */
import { withoutQuery } from '../../shared/addresses.js'
import { isUnauthorized } from '../../shared/statuses.js'
import { excerpt } from '../../shared/text.js'
import type { RecordedRequest, TimeLineEvent } from '../activity.js'
import { faultInWords } from '../faults.js'
import type { EndReason, SubscriptionRecord } from '../service/subscription-store.js'
import { clock, durationInWords, endReasons, injectedFault, isFailed, toneOf } from '../words.js'
import type { PageView } from './host.js'
import { type Html, html } from './html.js'

/** A request or a callback. */
export type SentEvent = Extract<TimeLineEvent, { request: object }>

export interface SubscriptionRow {
  readonly subscription: SubscriptionRecord
  /** Missing for an active one. */
  readonly reason?: EndReason
}

export function targetOf({ kind, request }: SentEvent): { method: string; address: string } {
  if (kind === 'callback') return { method: 'POST', address: request.callbackUrl }
  return { method: request.method, address: request.path }
}

export function subscriptionIdOf(event: TimeLineEvent): number | undefined {
  return 'request' in event ? event.request.subscriptionId : event.subscription.subscriptionId
}

/** Whether an event is bad news: an error, a status from 400 on, or a subscription that three failures ended. */
export function isFailure(event: TimeLineEvent): boolean {
  return 'request' in event ? isFailed(event.request) : event.reason === 'three-failures'
}

export function titleOf(event: TimeLineEvent): string {
  if (event.kind === 'ended') return `Subscription #${event.subscription.subscriptionId} ended`
  if (event.kind === 'callback') return event.request.type
  const { operation, method, path } = event.request
  return operation === 'unknown' ? `${method} ${withoutQuery(path)}` : operation
}

/** Why a request or callback failed: what the answer says, or why there is none. */
export function reasonOf({ kind, request }: SentEvent): string | undefined {
  const { error, answer, status = 0 } = request
  const refusal = kind === 'request' ? request.refusal?.message : undefined
  if (refusal !== undefined || !isFailed(request)) return refusal
  if (error?.startsWith(injectedFault)) return undefined
  const said = excerpt((answer?.body ?? '').replace(/<[^<>]*>/g, ' '), 200).trim()
  // The receiver of this package answers a wrong secret without a body.
  const where =
    kind === 'callback' && isUnauthorized(status) ? ": see callback.refused in the receiver's log" : ''
  return said || (error && error + where)
}

export function dots(failures: number): Html {
  const words = `${failures} of 3 callbacks failed`
  return html`<span class="dots" role="img" aria-label="${words}" title="${words}">${[0, 1, 2].map(
    (index) => html`<i class="${index < failures && 'failed'}"></i>`,
  )}</span>`
}

export function subscriptionRow({ subscription, reason }: SubscriptionRow, view: PageView): Html {
  const { subscriptionId, usernames, notificationTypes, callbackUrl, consecutiveFailures } = subscription
  const place = `subscription-${subscriptionId}`
  return html`<li><a class="row" id="${place}" href="${view.linkTo({ open: place })}" aria-current="${String(view.open === place)}">
    <span>${namesOf(usernames)} <span class="id">#${subscriptionId}</span></span>
    ${reason === undefined ? dots(consecutiveFailures) : html`<span class="muted">ended</span>`}
    <span class="about">${reason && html`<span class="${reason === 'three-failures' && 'bad'}">${endReasons[reason]}</span><br>`}${notificationTypes.join(', ')} → ${addressOf(callbackUrl, view)}</span>
  </a></li>`
}

const glyphs = { request: '↙', callback: '↗', ended: '⊘' } as const

/** @param idPrefix - an event may be in two lists */
export function eventRow(event: TimeLineEvent, view: PageView, idPrefix = ''): Html {
  const { number, kind } = event
  const place = `event-${number}`
  const at = 'request' in event ? event.request.startedAt : event.at
  const id = subscriptionIdOf(event)
  return html`<li><a class="row event" id="${idPrefix + place}" href="${view.linkTo({ open: place })}" aria-current="${String(view.open === place)}">
    <span class="glyph ${kind} ${kind === 'ended' && isFailure(event) && 'bad'}" role="img" aria-label="${kind}">${glyphs[kind]}</span>
    <span>${titleOf(event)} ${kind !== 'ended' && id !== undefined && html`<span class="id">#${id}</span>`}</span>
    ${'request' in event ? outcomeOf(event.request) : html`<span></span>`}
    <span class="about"><time>${clock(at)}</time> ${aboutOf(event, view)}</span>
  </a></li>`
}

function aboutOf(event: TimeLineEvent, view: PageView): unknown {
  if (event.kind === 'ended')
    return html`<span class="${isFailure(event) && 'bad'}">${endReasons[event.reason]}</span>`
  const { fault } = event.request
  const reason = reasonOf(event)
  return [
    event.kind === 'callback' && `for ${event.request.username} · `,
    fault && html`<span class="warning">fault: ${faultInWords(fault)}</span> · `,
    reason !== undefined
      ? html`<span class="${isFailure(event) && 'bad'}">${reason}</span>`
      : event.kind === 'callback'
        ? addressOf(event.request.callbackUrl, view)
        : requestInWords(event.request, view),
  ]
}

function requestInWords({ operation, method, path, headers, body }: RecordedRequest, view: PageView) {
  if (operation !== 'create') return `${method} ${view.secrets.url(path)}`
  const {
    username = '',
    notification_type = '',
    callback_url = '',
  } = view.secrets.fields(headers, body) ?? {}
  return [`${namesOf(username.split(','))} · ${notification_type} → `, addressOf(callback_url, view)]
}

/** An address without its scheme, that breaks between its parts if it does not fit into a line. */
function addressOf(url: string, { secrets }: PageView): Html[] {
  const address = excerpt(secrets.url(url).replace(/^https?:\/\//, ''), 300)
  return address.split(/(?<=\w[/?])/).map((part) => html`${part}<wbr>`)
}

function namesOf(names: readonly string[]): string {
  const [first = ''] = names
  return names.length <= 3
    ? excerpt(names.join(', '), 200)
    : `${excerpt(first, 200)} and ${names.length - 1} more`
}

export function outcomeOf(request: SentEvent['request']): Html {
  const { status, durationMs } = request
  const text = status ?? (durationMs === undefined ? 'waiting' : 'no answer')
  return html`<span class="outcome"><span class="status ${toneOf(request)}">${text}</span>
    <small class="muted">${durationMs !== undefined && durationInWords(durationMs)}</small></span>`
}
