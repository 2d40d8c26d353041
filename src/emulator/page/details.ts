/** What is open beside the lists: a request, a callback, a subscription or a form. */
import { parseJson } from '../../shared/validation.js'
import type { RecordedAnswer } from '../activity.js'
import { faultInWords } from '../faults.js'
import { clock, endReasons, isFailed, toneOf } from '../words.js'
import { faultForm, guideOf, sendForm } from './forms.js'
import type { PageView } from './host.js'
import { actionButton, copyButton, type Html, html } from './html.js'
import {
  dots,
  eventRow,
  outcomeOf,
  reasonOf,
  type SentEvent,
  subscriptionIdOf,
  targetOf,
  titleOf,
} from './rows.js'
import type { Pairs } from './secrets.js'

export function openedOf(view: PageView): Html | undefined {
  const [kind, id = ''] = view.open.split('-')
  if (kind === 'connect') return html`<h2>Connect a client</h2>${guideOf(view)}`
  if (kind === 'send') return sendForm(view, id)
  if (kind === 'faults') return faultForm(view)
  if (kind === 'subscription') return subscriptionDetails(Number(id), view)
  if (kind !== 'event') return undefined
  const event = view.host.activity.event(Number(id))
  if (event === undefined) {
    return html`<h2>Gone</h2><p class="muted">The emulator keeps the newest 1,000 of each kind, and nothing of an earlier start.</p>`
  }
  if ('request' in event) return sentDetails(event, view)
  return subscriptionDetails(event.subscription.subscriptionId, view)
}

function sentDetails(event: SentEvent, view: PageView): Html {
  const { number, kind, request } = event
  const { startedAt, fault, answer } = request
  const isCallback = kind === 'callback'
  const { method, address } = targetOf(event)
  const reason = reasonOf(event)
  const isWhole = request.bodyLength === request.body.length
  const subscriptionId = isCallback
    ? request.subscriptionId
    : (request.subscriptionId ?? request.refusal?.subscriptionId)
  const isActive = view.host.store.get(subscriptionId ?? 0) !== undefined
  return html`
    <h2>${titleOf(event)}</h2>
    <p>${outcomeOf(request)} <span class="muted">${new Date(startedAt).toISOString().slice(0, 10)} ${clock(startedAt)}</span></p>
    ${fault && html`<p class="notice warning">An injected fault: ${faultInWords(fault)}.</p>`}
    ${reason && html`<p class="notice ${isFailed(request) ? 'bad' : toneOf(request)}">${reason}</p>`}
    ${isCallback && fault === undefined && isFailed(request) && parametersSent(request.headers, view)}
    <p><code>${method} ${view.secrets.url(address)}</code></p>
    <div class="buttons">
      ${isCallback && isActive && isWhole && actionButton('resend', { event: number }, 'Resend', 'primary')}
      ${isCallback && html`<a class="button" href="${view.linkTo({ open: `send-${number}` })}">Change and send…</a>`}
      ${isWhole && copyButton(`${number}`, 'Copy as curl')}
      ${subscriptionId !== undefined && html`<a class="button" href="${view.linkTo({ open: `subscription-${subscriptionId}` })}">Subscription #${subscriptionId}</a>`}
    </div>
    ${isCallback && !isActive && html`<p>Subscription #${subscriptionId} has ended: nothing is sent to it any more.</p>`}
    ${section(isCallback ? "The receiver's answer" : "The emulator's answer", answer, view, answerBody)}
    ${section(isCallback ? `The callback for ${request.username}` : 'The request', request, view, isCallback ? answerBody : requestBody)}`
}

/** Beside a failed callback, because most failures are a wrong secret. */
function parametersSent({ 'content-type': _, ...parameters }: Pairs, { secrets }: PageView): Html {
  return Object.keys(parameters).length === 0
    ? html`<p class="warning">Sent without a parameter: a receiver that checks a secret refuses it.</p>`
    : html`<p class="muted">Sent with the parameters</p>${pairsOf(secrets.pairs(parameters))}`
}

/** The body before the headers, because it says more. */
function section(
  title: string,
  sent: RecordedAnswer | undefined,
  view: PageView,
  bodyOf: (sent: RecordedAnswer, view: PageView) => Html,
): Html {
  if (sent === undefined) return html`<h3>${title}</h3><p class="muted">No complete answer.</p>`
  const { headers, body, bodyLength } = sent
  return html`<h3>${title}</h3>
    ${body === '' ? html`<p class="muted">No body.</p>` : bodyOf(sent, view)}
    ${bodyLength > body.length && html`<p class="muted">Only the beginning is kept, of ${bodyLength} characters.</p>`}
    ${pairsOf(view.secrets.pairs(headers))}`
}

/** A body without fields may hold a secret anywhere: perhaps only its Content-Type is wrong. */
function requestBody({ headers, body }: RecordedAnswer, { secrets }: PageView): Html {
  const fields = secrets.fields(headers, body)
  return fields === undefined ? html`<pre>${secrets.value('body', body)}</pre>` : pairsOf(fields)
}

/** Indented if it is JSON. */
function answerBody({ body }: RecordedAnswer, { secrets }: PageView): Html {
  // The indentation of so many levels would itself be long.
  const json = (body.match(/[[{]/g)?.length ?? 0) > 1_000 ? undefined : parseJson(body)
  return html`<pre>${secrets.answer(json === undefined ? body : JSON.stringify(json, undefined, 2))}</pre>`
}

function pairsOf(pairs: Pairs): Html {
  return html`<dl>${Object.entries(pairs).map(
    ([name, value]) => html`<div><dt>${name}</dt><dd>${value === '' ? 'empty' : value}</dd></div>`,
  )}</dl>`
}

function subscriptionDetails(id: number, view: PageView): Html {
  const { activity, store } = view.host
  const events = activity.events.reverse().filter((event) => subscriptionIdOf(event) === id)
  const [end] = events.flatMap((event) => (event.kind === 'ended' ? [event] : []))
  const active = store.get(id)
  const subscription = active ?? end?.subscription
  if (subscription === undefined)
    return html`<h2>Gone</h2><p class="muted">There is no subscription #${id} here.</p>`
  const { notificationTypes, usernames, callbackUrl, parameters } = subscription
  const fault = { operation: 'callback', fault: '{"status":503}', times: '1', subscriptionId: id }
  return html`
    <h2>Subscription #${id}</h2>
    <p class="muted">${notificationTypes.join(', ')} of ${usernames.slice(0, 50).join(', ')}${usernames.length > 50 && ` and ${usernames.length - 50} more`}</p>
    <p><code>${view.secrets.url(callbackUrl)}</code></p>
    ${
      active === undefined
        ? html`<p class="notice ${end?.reason === 'three-failures' && 'bad'}">It ended because ${end && endReasons[end.reason]}.</p>`
        : html`<p>${dots(active.consecutiveFailures)} ${active.consecutiveFailures} of 3 callbacks failed: three in a row end it</p>
          <div class="buttons">
            <a class="button primary" href="${view.linkTo({ open: `send-${id}s` })}">Send a notification…</a>
            ${actionButton('inject', fault, 'Fail its next callback')}
            ${actionButton('end', { subscriptionId: id }, 'End it', 'bad')}
          </div>`
    }
    <h3>Its time line</h3>
    <ol class="links">${events.slice(0, 50).map((event) => eventRow(event, view, 'its-'))}</ol>
    <a class="button small" href="${view.linkTo({ q: `#${id}` })}">Show only its events</a>
    <h3>Parameters, sent as headers of each callback</h3>
    ${pairsOf(view.secrets.pairs(parameters))}`
}
