/** Posts a delivery to the callback URL, without and with the secret, as the service would. */
import { randomUUID } from 'node:crypto'
import { Agent, request } from 'undici'
import { trustedWith } from '../../http/authorities.js'
import { connectionProblem } from './connection.js'
import { failed, passed, type Step, skipped } from './step.js'

export interface CallbackCheck {
  readonly callbackUrl: URL
  /** The associated values that the receiver knows its callbacks by. */
  readonly secrets: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** Certificates in PEM to trust besides the public authorities. */
  readonly ca: string | undefined
}

/** What came back, without the body, which is never printed. */
type Answer =
  | { readonly status: number; readonly location: string | undefined; readonly durationMs: number }
  | { readonly problem: string; readonly next: string }

export async function* checkCallback(check: CallbackCheck): AsyncGenerator<Step> {
  const names = ['Callback without the secret', 'Callback with the secret'] as const
  const agent = new Agent(check.ca === undefined ? {} : { connect: { ca: await trustedWith(check.ca) } })
  try {
    const refused = await post(agent, check, {})
    yield stepWithoutSecret(names[0], refused)
    if ('problem' in refused) {
      yield skipped(names[1], 'not tried, because nothing answers')
      return
    }
    yield stepWithSecret(names[1], await post(agent, check, check.secrets), Object.keys(check.secrets))
  } finally {
    await agent.destroy()
  }
}

/** A delivery that no handler is for: of a subscription and a type that do not exist. */
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
  { callbackUrl, timeoutMs }: CallbackCheck,
  headers: Readonly<Record<string, string>>,
): Promise<Answer> {
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
    await answer.body.dump()
    // `dump` ends without an error when it is aborted.
    signal.throwIfAborted()
    const location = [answer.headers.location].flat()[0]
    return { status: answer.statusCode, location, durationMs: Math.round(performance.now() - startedMs) }
  } catch (error) {
    if (Object(error).name === 'TimeoutError') {
      return {
        problem: `no complete answer within ${timeoutMs} ms`,
        next: 'Answer first and work afterwards, as DeliveryReceiver does: three late answers in a row end a subscription',
      }
    }
    const { message, next } = connectionProblem(error, callbackUrl)
    return { problem: message, next: next ?? 'Is the app running, and is this its address from outside?' }
  }
}

function stepWithoutSecret(name: string, answer: Answer): Step {
  if ('problem' in answer) return failed(name, answer.problem, answer.next)
  const { status, durationMs } = answer
  if (status === 401 || status === 403) return passed(name, `refused with ${status} in ${durationMs} ms`)
  if (isSuccess(status)) {
    return failed(
      name,
      `accepted with ${status}: anybody can send notifications to this address`,
      'Let the route check the secret: `secrets` of DeliveryReceiver does',
    )
  }
  return unexpected(name, answer)
}

function stepWithSecret(name: string, answer: Answer, headerNames: readonly string[]): Step {
  if ('problem' in answer) return failed(name, answer.problem, answer.next)
  const { status, durationMs } = answer
  if (isSuccess(status)) return passed(name, `accepted with ${status} in ${durationMs} ms`)
  if (status === 401 || status === 403) {
    return failed(
      name,
      `refused with ${status}`,
      `Does the receiver expect the header ${headerNames.join(', ')}, and is its value what the file holds?`,
    )
  }
  return unexpected(name, answer)
}

function unexpected(name: string, { status, location }: Extract<Answer, { status: number }>): Step {
  if (status >= 300 && status <= 399) {
    return failed(
      name,
      `redirected with ${status}${targetOf(location)}: a callback that is answered so has failed`,
      'Subscribe with the address that it leads to',
    )
  }
  switch (status) {
    case 400:
    case 413:
    case 415:
      return failed(
        name,
        `answered ${status}: something before the receiver, such as a body parser, refused the delivery`,
        'Put the route before the body parser (docs/receiver.md): three such answers in a row end a subscription',
      )
    case 404:
    case 405:
      return failed(
        name,
        `answered ${status}: no route takes a POST there`,
        'Check path and method of the route',
      )
    default:
      return failed(name, `answered ${status}`, 'Look into the log of the app')
  }
}

/** Where a redirect leads, without the query, in which a secret may stand. */
function targetOf(location: string | undefined): string {
  if (location === undefined || !URL.canParse(location)) return ''
  const { origin, pathname } = new URL(location)
  return ` to ${origin}${pathname}`
}

function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299
}
