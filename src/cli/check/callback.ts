/** Posts two deliveries to the callback URL, as the service would: one without the secret and one with it. */
import { randomUUID } from 'node:crypto'
import { durationInWords } from '../../emulator/words.js'
import { ConfigurationError, type ConnectionError, TimeoutError } from '../../errors.js'
import { isOfProxy, toConnectionError } from '../../http/connection-error.js'
import { Deadline } from '../../http/deadline.js'
import { addressBelow, type Transport } from '../../http/exchange.js'
import { intermediaryOf } from '../../http/intermediary.js'
import { isPage } from '../../http/reason.js'
import { undiciTransport } from '../../http/undici.js'
import { testDelivery } from '../../notification-types.js'
import { redirectTarget } from '../../shared/addresses.js'
import { redact } from '../../shared/redact.js'
import {
  isAboutCredentials,
  isAbsent,
  isBodyRefused,
  isRedirect,
  isSuccess,
  isWrongMethod,
} from '../../shared/statuses.js'
import { advice, certificateProblem } from '../next-step.js'
import { type CheckStep, failed, passed, type StepResult, skipped, unknown } from './step.js'

export interface CallbackCheck {
  readonly callbackUrl: URL
  /** The headers with which the receiver authenticates callbacks. */
  readonly secrets: Readonly<Record<string, string>>
  /** What `--secret` names: headers, and where their values are. */
  readonly sources: readonly string[]
  readonly timeoutMs: number
  /** Certificates in PEM to trust in addition to the public authorities. */
  readonly ca: string | undefined
}

/** The answer without its body, which is never printed; `location` is the target of a redirect. */
type ReceiverReply =
  | {
      readonly status: number
      readonly location: string | undefined
      /** What answered, if a mark or a page of HTML, which no `DeliveryReceiver` sends, shows that. */
      readonly other: string | undefined
      /** Whether it asks for a login, as no `DeliveryReceiver` does. */
      readonly isLogin: boolean
      readonly durationMs: number
    }
  | { readonly problem: string; readonly next: string; readonly isUntrusted?: boolean }

const lookIntoLog = "Look into your app's log"

/** Posts through the proxy that the client uses, too. */
export async function* checkCallback(check: CallbackCheck): AsyncGenerator<CheckStep> {
  const names = ['Callback without the secret', 'Callback with the secret'] as const
  let transport = undiciTransport({ dispatcher: undefined, ca: undefined })
  try {
    let refused = await post(transport, check, {})
    const isOwnAuthority = check.ca !== undefined && 'problem' in refused && refused.isUntrusted === true
    if (isOwnAuthority) {
      await transport.close?.()
      transport = undiciTransport({ dispatcher: undefined, ca: check.ca })
      refused = await post(transport, check, {})
    }
    yield { name: names[0], ...resultOf(refused, 'refused', check) }
    if ('problem' in refused) {
      yield { name: names[1], ...skipped('not tried, because the first one was not answered') }
      return
    }
    const accepted = await post(transport, check, check.secrets)
    yield { name: names[1], ...resultOf(accepted, 'accepted', check) }
    if (isOwnAuthority) {
      const message = 'whether the service trusts the certificate: only the certificates that you name do'
      yield { name: 'Callback certificate', ...unknown(message, trustedByService) }
    }
  } finally {
    await transport.close?.()
  }
}

const trustedByService =
  'The service must trust it, too: use a certificate of a public authority, or ask the operator of the service'

/** A delivery of a subscription and a type that do not exist. */
function deliveryBody(): string {
  const { subscriptionId, type } = testDelivery
  const notification = { id: randomUUID(), time: Date.now(), ver: '1.0', type, payload: {} }
  return JSON.stringify({ subscriptionId, notification })
}

async function post(
  transport: Transport,
  { callbackUrl, secrets, timeoutMs }: CallbackCheck,
  headers: Readonly<Record<string, string>>,
): Promise<ReceiverReply> {
  const late = {
    problem: `no complete answer within ${durationInWords(timeoutMs)}`,
    next: 'Answer first and work afterwards, as DeliveryReceiver does: three late answers in a row end a subscription',
  }
  const deadline = new Deadline(
    timeoutMs,
    undefined,
    () => new TimeoutError(late.problem, { timeoutMs, phase: 'answer' }),
  )
  const address = addressBelow(new URL(callbackUrl.origin), callbackUrl.pathname + callbackUrl.search)
  const startedMs = performance.now()
  try {
    // Redirects are not followed: the secret is for this address only.
    const answer = await transport.send(
      {
        method: 'POST',
        address,
        headers: { 'content-type': 'application/json', ...headers },
        body: deliveryBody(),
      },
      deadline,
    )
    const values = Object.values(secrets)
    if ('status' in answer) {
      const target = redirectTarget(answer.header('location'), address.url)
      const location = target && redact(target, values)
      const other = intermediaryOf(answer) ?? (isPage(answer.body) ? 'an HTML page' : undefined)
      const durationMs = Math.round(performance.now() - startedMs)
      const isLogin = answer.header('www-authenticate') !== undefined
      return { status: answer.status, location, other, isLogin, durationMs }
    }
    const { error, requestSent } = answer
    if (error instanceof TimeoutError) return late
    const failure = toConnectionError(error, { host: address.host, secrets: values }, requestSent)
    return { problem: failure.message, ...afterFailure(failure, address.host) }
  } catch (error) {
    // The variable of the proxy has no usable value.
    if (error instanceof ConfigurationError) return { problem: error.message, next: advice.correctProxy }
    throw error
  } finally {
    deadline.end()
  }
}

function afterFailure(
  failure: ConnectionError,
  host: string,
): { problem?: string; next: string; isUntrusted?: boolean } {
  if (failure.requestSent) return { next: lookIntoLog }
  if (isOfProxy(failure))
    return { next: `${advice.correctProxy}. Whether the service reaches it is not shown` }
  switch (certificateProblem(failure)) {
    case 'untrusted':
      return {
        problem: `The certificate of ${host} is signed by an authority that is not trusted here`,
        next: `${trustedByService}. To go on here, name its authority: --callback-ca`,
        isUntrusted: true,
      }
    case 'wrong':
      return { next: 'The service refuses it, too: replace the certificate, or correct the address' }
  }
  const { code = '' }: { code?: string } = Object(failure.cause)
  if (code === 'ENOTFOUND') return { next: 'Correct the name, or create its DNS record' }
  if (/^ERR_SSL_(?:WRONG_VERSION|PACKET_LENGTH)/.test(code))
    return { next: 'The port answers, but not in TLS' }
  return { next: `Is your app running, and does it listen at ${host}?` }
}

function resultOf(
  answer: ReceiverReply,
  expected: 'refused' | 'accepted',
  { sources }: CallbackCheck,
): StepResult {
  if ('problem' in answer) return failed(answer.problem, answer.next)
  const { status, location, other, isLogin, durationMs } = answer
  const shown = other === undefined ? `${status}` : `${status} (${other})`
  if (other !== undefined && (isSuccess(status) || isAboutCredentials(status))) {
    const message = `${other} answered with ${status}, so something in front of your receiver may have`
    const next = 'Is a login, a tunnel or a web server in front of it? See whether its log has the delivery'
    return { outcome: 'unknown', message, next }
  }
  const outcome = isSuccess(status) ? 'accepted' : isAboutCredentials(status) ? 'refused' : undefined
  if (outcome === expected) return passed(`${outcome} with ${status} in ${durationInWords(durationMs)}`)
  if (outcome === 'accepted') {
    return failed(
      `accepted with ${status}: anyone who knows this address can send notifications`,
      'Check the secret in the route: give it to DeliveryReceiver as `secrets`, or call verifySecrets',
    )
  }
  if (outcome === 'refused') {
    const next = isLogin
      ? 'Something in front of the receiver asks for a login (WWW-Authenticate): let callbacks pass it'
      : `Does the receiver expect what --secret ${sources.join(' --secret ')} sends? See callback.refused in its log`
    return failed(`refused with ${status}`, next)
  }
  if (isRedirect(status)) {
    const to = location === undefined ? '' : ` to ${location}`
    const message = `redirected with ${status}${to}: to the service that is a failed callback`
    const next = 'Subscribe with the address of the redirect. If it is a login, let callbacks pass it'
    return failed(message, next)
  }
  if (isBodyRefused(status)) {
    return failed(
      `answered ${status}: something in front of the receiver, such as a body parser, refused the delivery`,
      'Put the route before the body parser (docs/receiver.md): three such answers in a row end a subscription',
    )
  }
  return isAbsent(status) || isWrongMethod(status)
    ? failed(`answered ${shown}: there is no route for POST`, 'Check path and method of the route')
    : failed(
        `answered ${shown}`,
        other === undefined ? lookIntoLog : 'Is your app running, and does what answered reach it?',
      )
}
