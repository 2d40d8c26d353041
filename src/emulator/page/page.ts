/** The page as HTML: one time line, the subscriptions beside it, and what the address opens. */
import { script, style } from './assets.js'
import { openedOf } from './details.js'
import { eventText, matching, subscriptionText } from './filter.js'
import { guideOf } from './forms.js'
import type { PageHost, PageView } from './host.js'
import { Html, hidden, html } from './html.js'
import { eventRow, isFailure, type SubscriptionRow, subscriptionRow } from './rows.js'
import { Secrets } from './secrets.js'

/** More rows would be slow; the filter finds the others. */
const shownRows = 300

const kinds = { '': 'All', request: 'Requests', callback: 'Callbacks', failure: 'Failures' } as const
const states = { '': 'Active', failing: 'Failing', ended: 'Ended' } as const

/**
 * What the address says: `show` a kind of events and `state` one of subscriptions, `q` the words of the filter, `after` an
 * event, `secrets=shown`, and `open` beside the lists.
 */
export function pageOf(host: PageHost, query: URLSearchParams): Html {
  const { show = '', state = '', q = '', after = '0', open = '', secrets = '' } = Object.fromEntries(query)
  const view: PageView = {
    host,
    open,
    secrets: new Secrets(secrets === 'shown'),
    linkTo(changes) {
      const all = Object.entries({ ...Object.fromEntries(query), ...changes })
      return `?${new URLSearchParams(all.filter(([, value]) => value !== ''))}`
    },
  }
  const events = host.activity.events.reverse()
  const found = matching(events, q, (event) => eventText(event, q)).filter(
    (event) =>
      event.number > Number(after) &&
      (show === 'failure' ? isFailure(event) : show === '' || show === event.kind),
  )
  const faults = host.faults.list()
  const rows = subscriptionRows(host, q)
  const chosen = rows.get(state) ?? []
  const opened = openedOf(view)
  const tab = (name: string, value: string, chosen: string, label: unknown) =>
    html`<a class="tab" href="${view.linkTo({ [name]: value })}" aria-current="${String(value === chosen)}">${label}</a>`
  const button = (place: string, label: unknown, kind = '') =>
    html`<a class="button ${kind}" href="${view.linkTo({ open: place })}" aria-current="${String(place === open)}">${label}</a>`
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Notification emulator</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='8' fill='%230f766e'/%3E%3Cpath d='M8 19.5h3.5l2.5-9 4 13 2.5-7.5H24' fill='none' stroke='%23fff' stroke-width='2.6' stroke-linecap='round' stroke-linejoin='round'/%3E%3C/svg%3E">
<style>${new Html(style)}</style>
<header>
  <h1><span aria-hidden="true">∿</span> Notification emulator</h1>
  <span id="connection" class="status" role="status">Not live</span>
  <code>${host.baseUrl.replace('https://', '')}</code>
  <form id="filter" role="search">
    <input type="search" name="q" value="${q}" aria-label="Filter" placeholder="Filter: user, type, status, #id, text" autocomplete="off">
    ${Object.entries({ ...Object.fromEntries(query), q: '' }).map(([name, value]) => value !== '' && hidden(name, value))}
  </form>
  <a class="button quiet" id="secrets" data-live href="${view.linkTo({ secrets: view.secrets.areShown ? '' : 'shown' })}">${view.secrets.areShown ? 'Hide' : 'Show'} secrets</a>
  <nav id="nav" data-live>
    ${button('', 'Time line', 'narrow')}
    ${button('subscriptions', 'Subscriptions', 'narrow')}
    ${button('send', 'Send')}
    ${button('faults', html`Faults ${faults.length > 0 && html`<b class="badge">${faults.length}</b>`}`)}
    ${button('connect', 'Connect')}
  </nav>
</header>
<noscript>Without JavaScript this page shows what has happened, and cannot send, resend, inject or follow.</noscript>
<main>
  <section class="pane" aria-label="Subscriptions" id="rail" data-live data-open="${String(open === 'subscriptions')}">
    <div class="pane-head">
      <h2>Subscriptions</h2>
      <div class="tabs">${Object.entries(states).map(([value, name]) => tab('state', value, state, `${name} ${rows.get(value)?.length}`))}</div>
    </div>
    <ol class="list" id="subscriptions">
      ${chosen.slice(0, shownRows).map((row) => subscriptionRow(row, view))}
      ${host.store.list().length === 0 && state === '' && html`<li class="empty">None. One appears as soon as a client creates it.</li>`}
      ${chosen.length > shownRows && html`<li class="empty">The filter finds the others.</li>`}
    </ol>
  </section>
  <section class="pane" aria-label="Time line" id="events" data-live>
    <div class="pane-head">
      <h2>Time line</h2>
      <div class="tabs">${Object.entries(kinds).map(([value, name]) => tab('show', value, show, name))}</div>
      <a class="tab end" href="${view.linkTo({ after: `${events[0]?.number ?? 0}` })}">Clear</a>
    </div>
    <ol class="list" id="time-line">
      ${found.slice(0, shownRows).map((event) => eventRow(event, view))}
      ${events.length === 0 && html`<li class="guide"><h3>Nothing has happened yet</h3>${open !== 'connect' && guideOf(view)}</li>`}
      ${events.length > 0 && found.length === 0 && html`<li class="empty">None of ${events.length} events is shown. <a href="?">Show all</a></li>`}
      ${found.length > shownRows && html`<li class="empty">${found.length - shownRows} older ones: the filter finds them.</li>`}
    </ol>
  </section>
  <section class="pane" aria-label="Details" id="details" data-live ${opened === undefined && 'hidden'}>
    <div class="details list" id="${open}-details">
      <a class="close" id="close" data-live href="${view.linkTo({ open: '' })}" aria-label="Close" title="Close (Escape)">✕</a>
      ${opened}
    </div>
  </section>
</main>
<output id="outcome" role="status"></output>
<script>${new Html(script)}</script>
</html>`
}

function subscriptionRows({ store, activity }: PageHost, q: string) {
  const found = (rows: readonly SubscriptionRow[]) =>
    matching(rows, q, ({ subscription }) => subscriptionText(subscription)).toReversed()
  const active = found(store.list().map((subscription) => ({ subscription })))
  const failing = active.filter(({ subscription }) => subscription.consecutiveFailures > 0)
  const ended = found(activity.events.filter((event) => event.kind === 'ended'))
  return new Map(Object.entries({ '': active, failing, ended }))
}
