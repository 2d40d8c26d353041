/** Posts two deliveries to the callback URL, as the service would: one without the secret and one with it. */
import { randomUUID } from 'node:crypto'
import { finished } from 'node:stream/promises'
import { Agent, request } from 'undici'
import { durationInWords } from '../../emulator/words.js'
import { provesUnsentByFetch, toConnectionError } from '../../http/connection-error.js'
import { trustedWith } from '../../http/undici.js'
import { parsedUrl } from '../../shared/addresses.js'
import { redact } from '../../shared/redact.js'
import {
  isAboutCredentials,
  isAbsent,
  isBodyRefused,
  isRedirect,
  isSuccess,
  isWrongMethod,
} from '../../shared/statuses.js'
import { excerpt } from '../../shared/text.js'
import { nextAfterConnection } from '../next-step.js'
import { type CheckStep, failed, passed, skipped } from './step.js'

export interface CallbackCheck {
  readonly callbackUrl: URL
  /** The headers with which the receiver authenticates callbacks. */
  readonly secrets: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** Certificates in PEM to trust in addition to the public authorities. */
  readonly ca: string | undefined
}

/** The answer without its body, which is never printed; `location` is the target of a redirect, or empty. */
type ReceiverReply =
  | { readonly status: number; readonly location: string; readonly durationMs: number }
  | { readonly problem: string; readonly next: string }

const lookIntoLog = "Look into your app's log"

export async function* checkCallback(check: CallbackCheck): AsyncGenerator<CheckStep> {
  const names = ['Callback without the secret', 'Callback with the secret'] as const
  const agent = new Agent(check.ca === undefined ? {} : { connect: { ca: await trustedWith(check.ca) } })
  try {
    const refused = await post(agent, check, {})
    yield stepOf(names[0], refused, 'refused', check)
    yield 'problem' in refused
      ? skipped(names[1], 'not tried, because the first one was not answered')
      : stepOf(names[1], await post(agent, check, check.secrets), 'accepted', check)
  } finally {
    await agent.destroy()
  }
}

/** A delivery of a subscription and a type that do not exist. */
function deliveryBody(): string {
  const notification = {
    id: randomUUID(),
    time: Date.now(),
    ver: '1.0',
    type: 'configurationCheck',
    payload: {},
  }
  return JSON.stringify({ subscriptionId: 0, notification })
}

async function post(
  agent: Agent,
  { callbackUrl, secrets, timeoutMs }: CallbackCheck,
  headers: Readonly<Record<string, string>>,
): Promise<ReceiverReply> {
  const startedMs = performance.now()
  try {
    // Redirects are not followed: the secret is for this address only.
    const signal = AbortSignal.timeout(timeoutMs)
    const answer = await request(callbackUrl, {
      dispatcher: agent,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: deliveryBody(),
      signal,
    })
    // Not `dump`, which accepts a body that breaks off or never ends.
    await finished(answer.body.resume())
    const location = redact(targetOf(answer.headers.location), Object.values(secrets))
    return { status: answer.statusCode, location, durationMs: Math.round(performance.now() - startedMs) }
  } catch (error) {
    if (Object(error).name === 'TimeoutError') {
      return {
        problem: `no complete answer within ${durationInWords(timeoutMs)}`,
        next: 'Answer first and work afterwards, as DeliveryReceiver does: three late answers in a row end a subscription',
      }
    }
    const { host } = callbackUrl
    const requestSent = !provesUnsentByFetch(error)
    const failure = toConnectionError(error, { host, secrets: Object.values(secrets) }, requestSent)
    const question = `Is your app running, and does it listen at ${host}?`
    const next = requestSent ? lookIntoLog : nextAfterConnection(failure, '--callback-ca', question)
    return { problem: failure.message, next }
  }
}

function stepOf(
  name: string,
  answer: ReceiverReply,
  expected: 'refused' | 'accepted',
  { secrets }: CallbackCheck,
): CheckStep {
  if ('problem' in answer) return failed(name, answer.problem, answer.next)
  const { status, location, durationMs } = answer
  const outcome = isSuccess(status) ? 'accepted' : isAboutCredentials(status) ? 'refused' : undefined
  if (outcome === expected) return passed(name, `${outcome} with ${status} in ${durationInWords(durationMs)}`)
  if (outcome === 'accepted') {
    return failed(
      name,
      `accepted with ${status}: anyone who knows this address can send notifications`,
      'Check the secret in the route: give it to DeliveryReceiver as `secrets`, or call verifySecrets',
    )
  }
  if (outcome === 'refused') {
    const next = `Does the receiver expect the header ${Object.keys(secrets).join(', ')} with the value that the file holds?`
    return failed(name, `refused with ${status}`, next)
  }
  if (isRedirect(status)) {
    const to = location && ` to ${location}`
    const message = `redirected with ${status}${to}: to the service that is a failed callback`
    return failed(name, message, 'Subscribe with the address of the redirect')
  }
  if (isBodyRefused(status)) {
    return failed(
      name,
      `answered ${status}: something in front of the receiver, such as a body parser, refused the delivery`,
      'Put the route before the body parser (docs/receiver.md): three such answers in a row end a subscription',
    )
  }
  return isAbsent(status) || isWrongMethod(status)
    ? failed(name, `answered ${status}: there is no route for POST`, 'Check path and method of the route')
    : failed(name, `answered ${status}`, lookIntoLog)
}

/** The address of a redirect, without the query, which may hold a secret. */
function targetOf(header: string | string[] | undefined): string {
  const [location = ''] = [header].flat()
  const url = parsedUrl(location)
  return url === undefined ? '' : excerpt(url.origin + url.pathname, 200)
}
