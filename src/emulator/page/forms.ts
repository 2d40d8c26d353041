/** The forms to send and to inject, and the guide to connect. */
import { documentedNotificationTypes, notificationTypes } from '../../notification-types.js'
import { parseJson } from '../../shared/validation.js'
import { faultTargets, injectedInWords } from '../faults.js'
import type { PageView } from './host.js'
import { actionButton, copyButton, type Html, html, select } from './html.js'
import { program } from './program.js'

/** @param from - the event whose notification is in the form, or with an `s` the subscription to send to */
export function sendForm({ host: { activity, store }, open }: PageView, from: string): Html {
  const subscriptions = store.list()
  const event = activity.event(Number(from))
  const callback = event?.kind === 'callback' ? event.request : undefined
  const subscription =
    subscriptions.find(({ subscriptionId }) => `${subscriptionId}s` === from) ?? subscriptions[0]
  const [category = 'behavioral'] = subscription?.notificationTypes ?? []
  const sample = category === 'behavioral' ? 'lowEnergyAgentOpened' : documentedNotificationTypes[category][0]
  const { type = sample, username = subscription?.usernames[0] ?? 'alice' } = callback ?? {}
  const { payload = undefined } = Object(Object(parseJson(callback?.body ?? '')).notification)
  const types = Object.values(documentedNotificationTypes).flat()
  const categories = Object.fromEntries(notificationTypes.map((each) => [each, each]))
  return html`<h2>Send a notification</h2>
    <form class="fields" id="form-${open}" action="api/notify">
      <label>User<input name="username" value="${username}" required autocomplete="off"></label>
      <label>Type<input name="type" value="${type}" list="types" required autocomplete="off"></label>
      ${select('category', 'Subscribed type', { '': 'the one that brings this type', ...categories })}
      <label>Payload<textarea name="payload" rows="8" spellcheck="false" placeholder="The documented sample, or {} where none is documented">${payload && JSON.stringify(payload, undefined, 2)}</textarea></label>
      <div><button class="button primary">Send</button></div>
      <datalist id="types">${types.map((each) => html`<option value="${each}">`)}</datalist>
    </form>`
}

const faults = {
  '{"status":503}': 'gets 503',
  '{"status":500}': 'gets 500',
  '{"status":401}': 'gets 401',
  '{"status":404}': 'gets 404',
  '{"status":429,"headers":{"retry-after":"2"}}': 'gets 429 (not callbacks)',
  '{"reset":"before-processing"}': 'loses the connection before it takes effect',
  '{"reset":"after-processing"}': 'takes effect and loses the answer',
  '{"delayMs":2000}': 'gets the answer 2 s late',
  '{"delayMs":10000}': 'gets the answer 10 s late',
  '{"malformedBody":true}': 'gets half a body (not callbacks)',
}

const times = { 1: 'once', 2: '2 times', 3: '3 times: ends a subscription', Infinity: 'until cleared' }

export function faultForm({ host }: PageView): Html {
  const injected = host.faults.list()
  return html`<h2>Inject a fault</h2>
    <form class="fields" id="form-faults" action="api/inject">
      ${select('operation', 'What fails', faultTargets)}
      ${select('fault', 'How it fails', faults)}
      ${select('times', 'How often', times)}
      <label>Only callbacks of subscription<input name="subscriptionId" type="number" min="1" placeholder="any"></label>
      <div><button class="button primary">Inject</button></div>
    </form>
    <h3>Injected</h3>
    <div id="injected" data-live>${injected.length === 0 ? html`<p class="muted">None. Fail three callbacks of one subscription to see it end.</p>` : html`<ul>${injected.map((fault) => html`<li>${injectedInWords(fault)}</li>`)}</ul>${actionButton('clear', {}, 'Clear all')}`}</div>
    <h3>Tokens</h3>
    <p class="muted">Refuses every access token issued until now, to see your client request another one.</p>
    ${actionButton('revoke-tokens', {}, 'Revoke tokens')}`
}

/** What to do first: the same that README says, and the terminal. */
export function guideOf({ host, secrets }: PageView): Html {
  const { envFile } = host
  const lines = Object.entries(secrets.pairs(host.variables)).map(([name, value]) => `${name}=${value}\n`)
  return html`
    <p>1. ${
      envFile === undefined
        ? html`Put these lines into <code>.env</code>, and save <a href="ca.pem" download="emulator-ca.pem">the certificate of the emulator's authority</a> beside it.`
        : html`The file <code>${envFile}</code> is written: it has these lines.`
    } ${copyButton('variables', 'Copy', 'small')}</p>
    <pre>${lines}</pre>
    <p>2. Save this program as <code>app.mjs</code>, and run <code>node --env-file=${envFile ?? '.env'} app.mjs</code>. ${copyButton('program', 'Copy', 'small')}</p>
    <pre>${program}</pre>
    <p>3. <a href="?open=send">Send a notification.</a></p>`
}
