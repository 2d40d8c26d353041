/** Posts two deliveries to the callback URL, as the service would: one without the secret and one with it. */
import { randomUUID } from 'node:crypto'
import { durationInWords } from '../emulator/words.js'
import { TimeoutError } from '../errors.js'
import { toConnectionError } from '../http/connection-error.js'
import { Deadline } from '../http/deadline.js'
import { addressBelow, type HttpResponse, type Transport } from '../http/exchange.js'
import { intermediaryOf } from '../http/intermediary.js'
import { isPage } from '../http/reason.js'
import { undiciTransport } from '../http/undici.js'
import { testDelivery } from '../notification-types.js'
import { redirectTarget } from '../shared/addresses.js'
import { redact } from '../shared/redact.js'
import {
  isAboutCredentials,
  isBodyRefused,
  isNotFound,
  isRedirect,
  isSuccess,
  isWrongMethod,
} from '../shared/statuses.js'
import { messageIn } from '../shared/words.js'
import { Finding, type Steps, skipped } from './step-report.js'
import { onCommandLine } from './words.js'

interface Target {
  readonly url: URL
  /** The headers with which the receiver authenticates callbacks. */
  readonly secrets: Readonly<Record<string, string>>
  /** Certificates in PEM to trust in addition to the public authorities. */
  readonly ca: string | undefined
}

/** How long a receiver may take. */
const timeoutMs = 5_000

const answerFirst =
  'Answer first and work afterwards, as DeliveryReceiver does: three late answers in a row end a subscription'
const lookIntoLog = "Look into your app's log"

const aboutReceiver = {
  ...onCommandLine,
  trust:
    'name a file with the certificate of its authority in --callback-ca (the service may trust public ones only)',
}

/** Posts through the proxy that the client uses, too. */
export async function checkCallback(steps: Steps, target: Target): Promise<void> {
  const transport = undiciTransport(target.ca)
  let isAnswered = false
  try {
    await steps.run('Callback without the secret', async () => {
      const answer = await post(transport, target, {})
      isAnswered = true
      return verdictOn(answer, 'refused', target)
    })
    await steps.run('Callback with the secret', async () => {
      if (!isAnswered) throw skipped('not tried, because the first one was not answered')
      return verdictOn(await post(transport, target, target.secrets), 'accepted', target)
    })
  } finally {
    await transport.close?.()
  }
}

/** A delivery of a subscription and a type that do not exist. @throws `Finding` if there is no answer */
async function post(
  transport: Transport,
  { url, secrets }: Target,
  headers: Target['secrets'],
): Promise<HttpResponse> {
  const { subscriptionId, type } = testDelivery
  const notification = { id: randomUUID(), time: Date.now(), ver: '1.0', type, payload: {} }
  const late = `no complete answer within ${durationInWords(timeoutMs)}`
  const lateError = () => new TimeoutError(late, { timeoutMs, phase: 'answer' })
  const deadline = new Deadline(timeoutMs, undefined, lateError)
  const address = addressBelow(new URL(url.origin), url.pathname + url.search)
  try {
    // Redirects are not followed: the secret is for this address only.
    const sent = {
      method: 'POST' as const,
      address,
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ subscriptionId, notification }),
    }
    const answer = await transport.send(sent, deadline)
    if ('status' in answer) return answer
    const { error, requestSent } = answer
    if (error instanceof TimeoutError) throw new Finding(late, answerFirst)
    const hidden = { host: address.host, secrets: Object.values(secrets) }
    const failure = toConnectionError(error, hidden, requestSent)
    throw new Finding(messageIn(aboutReceiver, failure), failure.requestSent ? lookIntoLog : undefined)
  } finally {
    deadline.end()
  }
}

/** @throws `Finding` for another answer than the one expected */
function verdictOn(answer: HttpResponse, expected: 'refused' | 'accepted', { url, secrets }: Target): string {
  const { status } = answer
  const other = intermediaryOf(answer) ?? (isPage(answer.body) ? 'an HTML page' : undefined)
  const answered = `answered ${status}${other === undefined ? '' : ` (${other})`}`
  const outcome = isSuccess(status) ? 'accepted' : isAboutCredentials(status) ? 'refused' : undefined
  if (outcome !== undefined && other !== undefined) {
    const next =
      "Does your receiver's log have the delivery? If not, let callbacks pass what stands in front of the receiver"
    throw new Finding(`${answered}: perhaps something in front of your receiver answered`, next, 'unknown')
  }
  if (outcome === expected) return `${outcome} with ${status}`
  if (outcome === 'accepted') {
    throw new Finding(
      `accepted with ${status}: anyone who knows this address can send notifications`,
      'Check the secret in the route: give it to DeliveryReceiver as `secrets`, or call verifySecrets',
    )
  }
  if (outcome === 'refused') {
    const next =
      answer.header('www-authenticate') === undefined
        ? 'Does the receiver expect what --secret sends? See callback.refused in its log'
        : 'Something in front of the receiver asks for a login (WWW-Authenticate): let callbacks pass without one'
    throw new Finding(`refused with ${status}`, next)
  }
  if (isRedirect(status)) {
    const to = redact(
      redirectTarget(answer.header('location'), url.href) ?? 'nowhere',
      Object.values(secrets),
    )
    throw new Finding(
      `redirected with ${status} to ${to}: a redirect counts as a failed callback`,
      'Subscribe with the address of the redirect. If that is a login, let callbacks pass without one',
    )
  }
  if (isBodyRefused(status)) {
    throw new Finding(
      `answered ${status}: something in front of the receiver, such as a body parser, refused the delivery`,
      'Put the route before the body parser (docs/receiver.md): three such answers in a row end a subscription',
    )
  }
  if (isNotFound(status) || isWrongMethod(status)) {
    throw new Finding(`${answered}: there is no route for POST`, 'Check path and method of the route')
  }
  throw new Finding(
    answered,
    other === undefined ? lookIntoLog : 'Is your app running, and can the proxy in front of it reach it?',
  )
}
