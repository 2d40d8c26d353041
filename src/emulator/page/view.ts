/** The page as HTML: one time line, the subscriptions beside it, and what the address opens. */
import { documentedNotificationTypes, notificationTypes } from '../../notification-types.js'
import { isUnauthorized } from '../../shared/statuses.js'
import { parseJson } from '../../shared/validation.js'
import type { HistoryEntry, RecordedCallback, RecordedMessage, RecordedRequest } from '../activity.js'
import { faultInWords, plannedInWords } from '../faults.js'
import type { SubscriptionRecord } from '../service/subscription-store.js'
import {
  clientVariables,
  clock,
  durationInWords,
  endReasons,
  injectedFault,
  isFailed,
  toneOf,
} from '../words.js'
import { script, style } from './assets.js'
import { curlOf } from './curl.js'
import type { PageHost } from './host.js'
import { Html, html } from './html.js'

type Entry<Kind extends HistoryEntry['kind']> = Extract<HistoryEntry, { kind: Kind }>
type Exchange = Entry<'request' | 'callback'>

/** More rows would be slow; the filter finds the others. */
const shownRows = 500

const kinds = { all: 'All', request: 'Requests', callback: 'Callbacks', failure: 'Failures' } as const

/** What the address says: `show` a kind, `q` the words of the filter, `after` an entry, and `open` beside the lists. */
export function pageOf(host: PageHost, query: URLSearchParams): Html {
  const { show = 'all', q = '', after = '0', open = '' } = Object.fromEntries(query)
  const linkTo = (changes: Record<string, string>) =>
    `?${new URLSearchParams({ ...Object.fromEntries(query), ...changes })}`
  const history = host.activity.history.reverse()
  const found = matching(history, q, wordsOfEntry).filter(
    (entry) =>
      entry.number > Number(after) &&
      (show === 'failure' ? isFailure(entry) : show === 'all' || show === entry.kind),
  )
  const subscriptions = [
    ...host.emulator.subscriptions.toReversed().map((subscription) => ({ subscription, reason: undefined })),
    ...history.filter((entry) => entry.kind === 'ended'),
  ]
  const faults = host.faults.list()
  const opened = openedOf(host, open, linkTo)
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Notification emulator</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='8' fill='%230f766e'/%3E%3Cpath d='M8 19.5h3.5l2.5-9 4 13 2.5-7.5H24' fill='none' stroke='%23fff' stroke-width='2.6' stroke-linecap='round' stroke-linejoin='round'/%3E%3C/svg%3E">
<style>${new Html(style)}</style>
<header>
  <h1><span aria-hidden="true">∿</span> Notification emulator</h1>
  <span id="connection" class="status pending" role="status">Connecting</span>
  <code>${host.emulator.baseUrl.replace('https://', '')}</code>
  <form id="filter" role="search">
    <input type="search" name="q" value="${q}" aria-label="Filter" placeholder="Filter: user, type, status, #id, text" autocomplete="off">
    <input type="hidden" name="show" value="${show}">
  </form>
  <label class="button quiet"><input type="checkbox" id="secrets"> Show secrets</label>
  <nav id="nav" data-live>
    <a class="button" href="${linkTo({ open: 'send' })}">Send</a>
    <a class="button" href="${linkTo({ open: 'faults' })}">Faults ${faults.length > 0 && html`<b class="badge">${faults.length}</b>`}</a>
    <a class="button" href="${linkTo({ open: 'connect' })}">Connect</a>
  </nav>
</header>
<main>
  <section class="pane" aria-label="Subscriptions" id="rail" data-live>
    <h2 class="pane-head">Subscriptions</h2>
    <ol class="list" id="subscriptions">
      ${matching(subscriptions, q, ({ subscription }) => wordsOfSubscription(subscription))
        .slice(0, shownRows)
        .map((each) => subscriptionRow(each, open, linkTo))}
      ${subscriptions.length === 0 && html`<li class="empty">None yet. One appears as soon as a client creates it.</li>`}
    </ol>
  </section>
  <section class="pane" aria-label="Time line" id="events" data-live>
    <div class="pane-head">
      <h2>Time line</h2>
      ${Object.entries(kinds).map(
        ([kind, name]) =>
          html`<a class="tab" href="${linkTo({ show: kind })}" aria-current="${String(kind === show)}">${name}</a>`,
      )}
      <a class="tab end" href="${linkTo({ after: `${history[0]?.number ?? 0}` })}">Clear</a>
    </div>
    <ol class="list" id="time-line">
      ${found.slice(0, shownRows).map((entry) => entryRow(entry, open, linkTo))}
      ${history.length === 0 && html`<li class="guide"><h3>Nothing has happened yet</h3>${guideOf(host)}</li>`}
      ${history.length > 0 && found.length === 0 && html`<li class="empty">None of ${history.length} entries is shown. <a href="?">Show all</a></li>`}
      ${found.length > shownRows && html`<li class="empty">${found.length - shownRows} older ones: the filter finds them.</li>`}
    </ol>
  </section>
  <section class="pane details" aria-label="Details" id="details" data-live ${opened === undefined && 'hidden'}>
    <a class="close" href="${linkTo({ open: '' })}" aria-label="Close" title="Close (Escape)">✕</a>
    ${opened}
  </section>
</main>
<output id="outcome" role="status"></output>
<script>${new Html(script)}</script>
</html>`
}

type LinkTo = (changes: Record<string, string>) => string

/** The items in which every word occurs; `#3` is subscription 3 and not 30. */
function matching<Item>(
  items: readonly Item[],
  text: string,
  wordsOf: (item: Item) => readonly unknown[],
): Item[] {
  const needles = text.toLowerCase().split(/\s+/).filter(Boolean)
  return items.filter((item) => {
    const words = needles.length === 0 ? '' : `${wordsOf(item).join(' ').toLowerCase()} `
    return needles.every((word) => words.includes(/^#\d+$/.test(word) ? `${word} ` : word))
  })
}

function wordsOfEntry(entry: HistoryEntry): readonly unknown[] {
  const about = [titleOf(entry), `#${subscriptionOf(entry)}`]
  if (entry.kind === 'tokens-revoked') return about
  if (entry.kind === 'ended') return [...about, endReasons[entry.reason]]
  const { status, error, body, answer } = entry.record
  const form = [...new URLSearchParams(body)].flat()
  const own = 'path' in entry.record ? [entry.record.path, ...form] : Object.values(entry.record)
  return [...about, status, error, body, answer?.body, ...own]
}

function wordsOfSubscription({
  subscriptionId,
  usernames,
  notificationTypes,
  callbackUrl,
}: SubscriptionRecord) {
  return [`#${subscriptionId}`, ...usernames, ...notificationTypes, callbackUrl]
}

function subscriptionOf(entry: HistoryEntry): number | undefined {
  if (entry.kind === 'tokens-revoked') return undefined
  return entry.kind === 'ended' ? entry.subscription.subscriptionId : entry.record.subscriptionId
}

/** Whether an entry is bad news: an error, a status from 400 on, or a subscription that three failures ended. */
function isFailure(entry: HistoryEntry): boolean {
  if (entry.kind === 'tokens-revoked') return false
  return entry.kind === 'ended' ? entry.reason === 'three-failures' : isFailed(entry.record)
}

function titleOf(entry: HistoryEntry): string {
  switch (entry.kind) {
    case 'request': {
      const { operation, method, path } = entry.record
      return operation === 'unknown' ? `${method} ${path}` : operation
    }
    case 'callback':
      return entry.record.type
    case 'ended':
      return `Subscription #${entry.subscription.subscriptionId} ended`
    case 'tokens-revoked':
      return 'Access tokens revoked'
  }
}

/** Why it failed: what the answer says, or why there is none. */
function reasonOf({ kind, record }: Exchange): string | undefined {
  const { error, answer, status = 0 } = record
  const refusal = kind === 'request' ? record.refusal?.message : undefined
  if (refusal !== undefined || !isFailed(record)) return refusal
  const said = answer?.body
    .replace(/<[^<>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 200)
  // The receiver of this package answers a wrong secret without a body.
  const where =
    kind === 'callback' && isUnauthorized(status) ? ": see callback.refused in the receiver's log" : ''
  if (error?.startsWith(injectedFault)) return undefined
  return said || (error && error + where)
}

function pips(failures: number): Html {
  const words = `${failures} of 3 failures in a row`
  return html`<span class="pips" role="img" aria-label="${words}" title="${words}">${[0, 1, 2].map(
    (index) => html`<i class="${index < failures && 'failed'}"></i>`,
  )}</span>`
}

function subscriptionRow(
  {
    subscription,
    reason,
  }: { subscription: SubscriptionRecord; reason: Entry<'ended'>['reason'] | undefined },
  open: string,
  linkTo: LinkTo,
): Html {
  const { subscriptionId, usernames, notificationTypes, callbackUrl, consecutiveFailures } = subscription
  const place = `subscription-${subscriptionId}`
  return html`<li><a class="row ${reason && 'gone'}" id="${place}" href="${linkTo({ open: place })}" aria-current="${String(open === place)}">
    <span>${namesOf(usernames)} <span class="id">#${subscriptionId}</span></span>
    ${reason === undefined ? pips(consecutiveFailures) : html`<span class="muted">ended</span>`}
    <span class="about">${reason && html`<span class="${reason === 'three-failures' && 'bad'}">${endReasons[reason]}</span><br>`}${notificationTypes.join(', ')} → ${addressOf(callbackUrl)}</span>
  </a></li>`
}

const glyphs = { request: '↙', callback: '↗', ended: '⊘', 'tokens-revoked': '⟲' } as const

function entryRow(entry: HistoryEntry, open: string, linkTo: LinkTo): Html {
  const { number, kind } = entry
  const place = `entry-${number}`
  const at = 'record' in entry ? entry.record.startedAt : entry.at
  const id = subscriptionOf(entry)
  return html`<li><a class="row entry" id="${place}" href="${linkTo({ open: place })}" aria-current="${String(open === place)}">
    <span class="glyph ${kind} ${kind === 'ended' && isFailure(entry) && 'bad'}" role="img" aria-label="${kind}">${glyphs[kind]}</span>
    <span>${titleOf(entry)} ${kind !== 'ended' && id !== undefined && html`<span class="id">#${id}</span>`}</span>
    ${'record' in entry ? statusOf(entry.record) : html`<span></span>`}
    <span class="about"><time>${clock(at)}</time> ${aboutOf(entry)}</span>
  </a></li>`
}

function aboutOf(entry: HistoryEntry): unknown {
  if (entry.kind === 'tokens-revoked') return 'every token issued until then is refused with 401'
  if (entry.kind === 'ended')
    return html`<span class="${isFailure(entry) && 'bad'}">${endReasons[entry.reason]}</span>`
  const { fault } = entry.record
  const reason = reasonOf(entry)
  const what =
    entry.kind === 'callback' ? ['→ ', addressOf(entry.record.callbackUrl)] : requestInWords(entry.record)
  return [
    entry.kind === 'callback' && `for ${entry.record.username} `,
    fault && html`<span class="pending">fault: ${faultInWords(fault)} </span>`,
    reason === undefined ? what : html`<span class="${isFailed(entry.record) && 'bad'}">${reason}</span>`,
  ]
}

function requestInWords({ operation, method, path, body }: RecordedRequest): string {
  if (operation !== 'create') return `${method} ${path}`
  const {
    username = '',
    notification_type = '',
    callback_url = '',
  } = Object.fromEntries(new URLSearchParams(body))
  return `${namesOf(username.split(','))} · ${notification_type} → ${callback_url}`
}

/** An address that breaks between its parts if it does not fit into a line. */
function addressOf(url: string): Html[] {
  return url.split(/(?<=\w[/?&=]|\/\/)/).map((part) => html`${part}<wbr>`)
}

function namesOf(names: readonly string[]): string {
  return names.length <= 3 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`
}

function statusOf(record: RecordedRequest | RecordedCallback): Html {
  const { status, durationMs } = record
  const text = status ?? (durationMs === undefined ? 'waiting' : 'no answer')
  return html`<span class="outcome"><span class="status ${toneOf(record)}">${text}</span>
    <small class="muted">${durationMs !== undefined && durationInWords(durationMs)}</small></span>`
}

/** What is open beside the lists: a form, the guide, an entry or a subscription. */
function openedOf(host: PageHost, open: string, linkTo: LinkTo): Html | undefined {
  const [view, id] = open.split('-')
  if (view === 'connect') return html`<h2>Connect a client</h2>${guideOf(host)}`
  if (view === 'send') return sendForm(host, id)
  if (view === 'faults') return faultForm(host)
  if (view === 'subscription') return subscriptionDetails(host, Number(id), linkTo)
  if (view !== 'entry') return undefined
  const entry = host.activity.entry(Number(id))
  if (entry?.kind === 'ended') return subscriptionDetails(host, entry.subscription.subscriptionId, linkTo)
  if (entry === undefined || entry.kind === 'tokens-revoked') {
    return html`<h2>${entry === undefined ? 'Gone' : titleOf(entry)}</h2><p class="muted">${
      entry === undefined
        ? 'The emulator keeps the newest 1,000 of each kind, and nothing of an earlier start.'
        : 'Every token issued before is refused with 401. A client that requests another one goes on.'
    }</p>`
  }
  return exchangeDetails(host, entry, linkTo)
}

function exchangeDetails(host: PageHost, entry: Exchange, linkTo: LinkTo): Html {
  const { number, kind, record } = entry
  const { startedAt, fault, headers, answer, subscriptionId } = record
  const isCallback = kind === 'callback'
  const reason = reasonOf(entry)
  const isWhole = record.bodyLength === record.body.length
  const isActive = host.emulator.subscriptions.some((each) => each.subscriptionId === subscriptionId)
  const { 'content-type': _, ...parameters } = headers
  return html`
    <h2>${titleOf(entry)}</h2>
    <p>${statusOf(record)} <span class="muted">${new Date(startedAt).toISOString().slice(0, 10)} ${clock(startedAt)}</span></p>
    ${fault && html`<p class="notice pending">A planned fault: ${faultInWords(fault)}.</p>`}
    ${reason && html`<p class="notice ${isFailed(record) ? 'bad' : toneOf(record)}">${reason}</p>`}
    ${
      isCallback &&
      fault === undefined &&
      isFailed(record) &&
      (Object.keys(parameters).length === 0
        ? html`<p class="pending">Sent without a parameter: a receiver that checks a secret refuses it.</p>`
        : html`<p class="muted">Sent with the parameters</p>${pairsOf(parameters)}`)
    }
    <p><code>${isCallback ? `POST ${record.callbackUrl}` : `${record.method} ${record.path}`}</code></p>
    <div class="buttons">
      ${isCallback && isActive && isWhole && actionButton('resend', { entryId: number }, 'Resend', 'primary')}
      ${isCallback && html`<a class="button" href="${linkTo({ open: `send-${number}` })}">Change and send…</a>`}
      ${isWhole && html`<button class="button" data-copy="${curlOf(entry, host)}">Copy as curl</button>`}
      ${subscriptionId !== undefined && html`<a class="button" href="${linkTo({ open: `subscription-${subscriptionId}` })}">Subscription #${subscriptionId}</a>`}
      ${isCallback && html`<a class="button" href="${linkTo({ q: record.notificationId })}">All callbacks of this notification</a>`}
    </div>
    ${isCallback && !isActive && html`<p>Subscription #${subscriptionId} has ended: nothing is sent to it any more.</p>`}
    ${messageOf(isCallback ? "The receiver's answer" : "The emulator's answer", answer)}
    ${messageOf(isCallback ? `The callback for ${record.username}` : 'The request', record)}`
}

/** Body and headers: the body says more. */
function messageOf(title: string, message: RecordedMessage | undefined): Html {
  const { headers = {}, body = '', bodyLength = 0 }: Partial<RecordedMessage> = message ?? {}
  const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded')
  return html`<h3>${title} ${body !== '' && html`<button class="button small" data-copy="${body}">Copy</button>`}</h3>
    ${body === '' ? html`<p class="muted">${message === undefined ? 'No complete answer.' : 'No body.'}</p>` : isForm ? pairsOf(Object.fromEntries(new URLSearchParams(body))) : bodyOf(body)}
    ${bodyLength > body.length && html`<p class="muted">Only the beginning is kept, of ${bodyLength} characters.</p>`}
    ${message !== undefined && pairsOf(headers)}`
}

/** Indented if it is JSON; an access token is a secret. */
function bodyOf(body: string): Html {
  // If so many are nested, the indentation itself would be long.
  const json = (body.match(/[[{]/g)?.length ?? 0) > 1_000 ? undefined : parseJson(body)
  const text = json === undefined ? body : JSON.stringify(json, undefined, 2)
  const [before = '', token, after = ''] = text.split(/(?<="access_token": ")([^"]+)/)
  return html`<pre>${before}${token && secret(token)}${after}</pre>`
}

/** Names whose values are harmless; a parameter of any other name may be the receiver's secret. */
const harmless = new Set(
  `accept accept-encoding accept-language allow cache-control callback_url connection content-encoding content-length
  content-type date etag grant_type host keep-alive location notification_type pragma recreateIfExists retry-after scope
  server transfer-encoding user-agent username vary www-authenticate NOTIFICATION_BASE_URL NOTIFICATION_AUTH_URL
  NOTIFICATION_DOMAIN NOTIFICATION_CLIENT_ID NOTIFICATION_CA_FILE`.split(/\s+/),
)

/** Shown as dots until "Show secrets" is checked: only the style of the page hides it. */
function secret(value: string): Html {
  return html`<span class="secret">${value}</span>`
}

function shownValue(name: string, value: string): Html | string {
  return harmless.has(name) || value === '' ? value : secret(value)
}

function pairsOf(pairs: Readonly<Record<string, string>>): Html {
  return html`<dl>${Object.entries(pairs).map(
    ([name, value]) =>
      html`<div><dt>${name}</dt><dd>${value === '' ? 'empty' : shownValue(name, value)}</dd></div>`,
  )}</dl>`
}

function subscriptionDetails(host: PageHost, id: number, linkTo: LinkTo): Html {
  const end = host.activity.history.find(
    (entry): entry is Entry<'ended'> => entry.kind === 'ended' && subscriptionOf(entry) === id,
  )
  const active = host.emulator.subscriptions.find((each) => each.subscriptionId === id)
  const subscription = active ?? end?.subscription
  if (subscription === undefined)
    return html`<h2>Gone</h2><p class="muted">There is no subscription #${id} here.</p>`
  const story = host.activity.history.reverse().filter((entry) => subscriptionOf(entry) === id)
  const fault = { operation: 'callback', fault: '{"status":503}', times: '1', subscriptionId: `${id}` }
  return html`
    <h2>Subscription #${id}</h2>
    <p class="muted">${subscription.notificationTypes.join(', ')} of ${subscription.usernames.slice(0, 50).join(', ')}${subscription.usernames.length > 50 && html` and ${subscription.usernames.length - 50} more`}</p>
    <p><code>${subscription.callbackUrl}</code></p>
    ${
      active === undefined
        ? html`<p class="notice ${end?.reason === 'three-failures' && 'bad'}">It ended because ${end && endReasons[end.reason]}.</p>`
        : html`<p>${pips(active.consecutiveFailures)} ${active.consecutiveFailures} of 3 failures in a row</p>
          <div class="buttons">
            <a class="button primary" href="${linkTo({ open: `send-${id}s` })}">Send to it…</a>
            ${actionButton('fault', fault, 'Fail its next callback')}
            ${actionButton('end', { subscriptionId: id }, 'End it', 'bad')}
          </div>`
    }
    <h3>Its time line</h3>
    <ol class="links">${story.slice(0, 50).map((entry) => entryRow(entry, '', linkTo))}</ol>
    <a class="button small" href="${linkTo({ q: `#${id}` })}">Show only its entries</a>
    <h3>Parameters, sent as headers of each callback</h3>
    ${pairsOf(subscription.parameters)}`
}

/** A button that posts its fields, all of them as text. */
function actionButton(action: string, fields: object, label: string, kind = ''): Html {
  return html`<form class="inline" action="api/${action}">${Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}<button class="button ${kind}">${label}</button></form>`
}

function select(name: string, label: string, options: Readonly<Record<string, string>>, chosen = ''): Html {
  return html`<label>${label}<select name="${name}">${Object.entries(options).map(
    ([value, text]) => html`<option value="${value}" ${value === chosen && 'selected'}>${text}</option>`,
  )}</select></label>`
}

/** @param from - the entry whose notification is in the form, or with an `s` the subscription to send to */
function sendForm({ activity, emulator }: PageHost, from = ''): Html {
  const { subscriptions } = emulator
  const entry = activity.entry(Number(from))
  const callback = entry?.kind === 'callback' ? entry.record : undefined
  const subscription =
    subscriptions.find(({ subscriptionId }) => `${subscriptionId}s` === from) ?? subscriptions[0]
  const [category = 'behavioral'] = subscription?.notificationTypes ?? []
  const sample = category === 'behavioral' ? 'lowEnergyAgentOpened' : documentedNotificationTypes[category][0]
  const { type = sample, username = subscription?.usernames[0] ?? 'alice' } = callback ?? {}
  const { payload = undefined } = Object(Object(parseJson(callback?.body ?? '')).notification)
  const types = Object.values(documentedNotificationTypes).flat()
  const users = [...new Set(subscriptions.slice(0, 200).flatMap(({ usernames }) => usernames.slice(0, 20)))]
  const categories = Object.fromEntries(notificationTypes.map((each) => [each, each]))
  const list = (id: string, values: readonly string[]) =>
    html`<datalist id="${id}">${values.map((value) => html`<option value="${value}">`)}</datalist>`
  return html`<h2>Send a notification</h2>
    <form class="fields" action="api/notify">
      <label>User<input name="username" value="${username}" list="users" required autocomplete="off"></label>
      <label>Type<input name="type" value="${type}" list="types" required autocomplete="off"></label>
      ${select('category', 'To subscriptions for', { '': 'what brings this type', ...categories })}
      <label>Payload<textarea name="payload" rows="8" spellcheck="false" placeholder="The documented sample, or {} where none is documented">${payload && JSON.stringify(payload, undefined, 2)}</textarea></label>
      <div><button class="button primary">Send</button></div>
      ${list('users', users)}${list('types', types)}
    </form>`
}

const operations = {
  callback: 'Callbacks',
  create: 'Create requests',
  update: 'Update requests',
  unsubscribe: 'Unsubscribe requests',
  token: 'Token requests',
}

const faults = {
  '{"status":503}': 'get 503',
  '{"status":401}': 'get 401',
  '{"status":429,"headers":{"retry-after":"2"}}': 'get 429 (not callbacks)',
  '{"reset":"before-processing"}': 'lose the connection before they take effect',
  '{"reset":"after-processing"}': 'take effect and lose the answer',
  '{"delayMs":2000}': 'get the answer 2 s late',
  '{"delayMs":10000}': 'get the answer 10 s late',
  '{"malformedBody":true}': 'get half a body (not callbacks)',
}

const times = { 1: 'once', 2: '2 times', 3: '3 times: ends a subscription', Infinity: 'until cleared' }

function faultForm({ faults: planned }: PageHost): Html {
  return html`<h2>Plan a fault</h2>
    <form class="fields" action="api/fault">
      ${select('operation', 'What fails', operations)}
      ${select('fault', 'How they fail', faults)}
      ${select('times', 'How often', times)}
      <label>Only callbacks of subscription<input name="subscriptionId" type="number" min="1" placeholder="any"></label>
      <div><button class="button primary">Plan it</button></div>
    </form>
    <h3>Planned</h3>
    ${planned.list().length === 0 ? html`<p class="muted">None. Plan three failing callbacks of one subscription to see it end.</p>` : html`<ul>${planned.list().map((each) => html`<li>${plannedInWords(each)}</li>`)}</ul>${actionButton('clear-faults', {}, 'Clear all')}`}
    <h3>Tokens</h3>
    <p class="muted">Refuses every access token issued until now, to see your client request another one.</p>
    ${actionButton('revoke-tokens', {}, 'Revoke tokens')}`
}

/** What to do first: the same that the terminal prints. */
function guideOf({ emulator, environment }: PageHost): Html {
  const variables = Object.entries({ ...clientVariables(emulator, 'emulator-ca.pem'), ...environment })
  const isSaved = environment.NOTIFICATION_CA_FILE !== undefined
  const program = `import { NotificationClient } from 'notification-subscriber'

const client = NotificationClient.fromEnv()
const { subscriptionId } = await client.createSubscription({
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: 'http://127.0.0.1:3000/notifications', // your receiver
  parameters: { token: process.env.CALLBACK_TOKEN },
  recreateIfExists: true,
})
console.log('Subscription', subscriptionId)`
  const lines = variables.map(([name, value]) => `${name}=${value}`).join('\n')
  return html`
    <p>1. Put these lines into <code>.env</code>${!isSaved && html`, and save <a href="ca.pem" download>the certificate of the emulator's authority</a> beside it`}. <button class="button small" data-copy="${lines}">Copy</button></p>
    <pre>${variables.map(([name, value]) => html`${name}=${shownValue(name, value)}\n`)}</pre>
    <p>2. Subscribe in your app: <code>node --env-file=.env app.mjs</code> <button class="button small" data-copy="${program}">Copy</button></p>
    <pre>${program}</pre>
    <p>3. <a href="?open=send">Send a notification.</a></p>`
}
