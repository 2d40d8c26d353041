/** The HTTP surface of the service: from a request to its Response (docs/service.md, Endpoints). */
import { setTimeout as sleep } from 'node:timers/promises'
import { readUpTo } from '../../shared/bounded-bytes.js'
import { endpoints, idPlace, resolvedRoute } from '../../shared/routes.js'
import { isBodiless } from '../../shared/statuses.js'
import { messageOf } from '../../shared/text.js'
import { type Activity, beginningOf, type RecordedRequest } from '../activity.js'
import { ConnectionReset, type EmulatorOperation, type Fault, type FaultPlan } from '../faults.js'
import type { ResolvedEmulatorOptions } from '../options.js'
import { injectedFault } from '../words.js'
import { decodeFormComponent, Refusal, type ServiceAnswer, type ServiceRequest } from './requests.js'
import { SubscriptionOperations } from './subscription-operations.js'
import type { SubscriptionStore } from './subscription-store.js'
import { answerTokenRequest, type TokenIssuer } from './token-endpoint.js'

/** A larger request body is refused with 413; no limit is documented (docs/service.md, Limits). */
export const maxBodyBytes = 1024 * 1024

/** A request as it comes over HTTP: a `Request` cannot have every method and target. */
export interface IncomingRequest {
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly headers: Headers
  readonly body: Parameters<typeof readUpTo>[1]
  /** Aborted when the sender no longer waits. */
  readonly signal?: AbortSignal
}

interface Endpoint {
  readonly operation: EmulatorOperation
  readonly method: string
  /** Path and query, with the place of a variable in braces. */
  readonly path: string
  answer(request: ServiceRequest): Promise<ServiceAnswer>
}

type About = Pick<RecordedRequest, 'subscriptionId' | 'refusal'>

interface Sent {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body: string
}

interface ServiceParts {
  readonly tokens: TokenIssuer
  readonly store: SubscriptionStore
  readonly faults: FaultPlan
  readonly activity: Activity
  /** Aborted when the emulator closes: delayed answers are given up then. */
  readonly closing: AbortSignal
}

export class NotificationService {
  readonly #parts: ServiceParts
  readonly #endpoints: readonly Endpoint[]

  constructor(options: ResolvedEmulatorOptions, parts: ServiceParts) {
    this.#parts = parts
    this.#endpoints = endpointsOf(options, parts)
  }

  /**
   * Answers a request.
   *
   * @throws `ConnectionReset` where a fault breaks the connection
   */
  async handle(request: IncomingRequest): Promise<Response> {
    const { method, target, headers, signal = this.#parts.closing } = request
    const { bytes, isComplete } = await readUpTo(maxBodyBytes, request.body)
    const body = Buffer.from(bytes).toString('utf8')
    const found = this.#find(method, target)
    const operation = found instanceof Refusal ? 'unknown' : found.endpoint.operation
    const fault = this.#parts.faults.takeForRequest(operation)
    const finish = this.#parts.activity.beginRequest({
      ...{ operation, method, body, path: target, headers: Object.fromEntries(headers) },
      ...(fault && { fault }),
    })
    let about: About = found instanceof Refusal ? {} : found.about
    const answer = async (): Promise<Sent> => {
      try {
        if (!isComplete) {
          const message = `The request body is over ${maxBodyBytes} bytes`
          throw new Refusal(413, message, { code: 'content_too_large' })
        }
        if (found instanceof Refusal) throw found
        const { endpoint, variable } = found
        const { subscriptionId, ...answered } = await endpoint.answer({ headers, body, variable })
        if (subscriptionId !== undefined) about = { subscriptionId }
        return sent(answered)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        const { status, message, options } = error
        const { code = 'invalid_request', headers, ...inTheWay } = options
        about = { ...about, ...inTheWay, refusal: { code, message } }
        const body =
          operation === 'token' ? { error: code, error_description: message } : { error: code, message }
        return sent({ status, headers: { 'cache-control': 'no-store', ...headers }, body })
      }
    }
    try {
      const { status, headers, body } = await this.#withFault(fault, signal, answer)
      // The fetch standard allows no body with some statuses.
      const response = new Response(body || null, { status, headers: { ...headers } })
      const recorded = { headers: Object.fromEntries(response.headers), ...beginningOf(body) }
      finish({ status, answer: recorded, ...about })
      return response
    } catch (error) {
      finish({ error: error instanceof ConnectionReset ? error.reason : messageOf(error), ...about })
      throw error
    }
  }

  async #withFault(
    fault: Fault | undefined,
    signal: AbortSignal,
    answer: () => Promise<Sent>,
  ): Promise<Sent> {
    if (fault === undefined) return answer()
    if ('status' in fault) {
      const { status, headers, body = '' } = fault
      return { status, headers, body: isBodiless(status) ? '' : body }
    }
    if ('delayMs' in fault) {
      await this.#delay(fault.delayMs, signal)
      return answer()
    }
    if ('malformedBody' in fault) {
      const { body, ...rest } = await answer()
      const half = body.slice(0, body.length / 2) || '{'
      return { ...rest, body: fault.malformedBody === true ? half : fault.malformedBody }
    }
    if (fault.reset === 'after-processing') await answer()
    throw new ConnectionReset(`${injectedFault} broke the connection ${fault.reset.replace('-', ' ')}`)
  }

  async #delay(delayMs: number, requestSignal: AbortSignal): Promise<void> {
    const { closing } = this.#parts
    try {
      await sleep(delayMs, undefined, { signal: AbortSignal.any([closing, requestSignal]) })
    } catch {
      if (closing.aborted) throw new ConnectionReset('The emulator was closed before its answer')
      throw requestSignal.reason
    }
  }

  /** The endpoint of a request, with the text in the place of its variable. */
  #find(method: string, target: string): { endpoint: Endpoint; variable: string; about: About } | Refusal {
    const matches = this.#endpoints.flatMap((endpoint) => {
      const variable = variableIn(target, endpoint.path)
      if (variable === undefined) return []
      const about = endpoint.path.includes(idPlace) ? { subscriptionId: Number(variable) } : {}
      return [{ endpoint, variable, about }]
    })
    if (matches.length === 0) return new Refusal(404, 'There is nothing at this path', { code: 'not_found' })
    const match = matches.find(({ endpoint }) => endpoint.method === method)
    if (match !== undefined) return match
    const allow = matches.map(({ endpoint }) => endpoint.method).join(', ')
    const options = { code: 'method_not_allowed', headers: { allow } }
    return new Refusal(405, `Only ${allow} is allowed here`, options)
  }
}

/** Every method and path that is answered; see the option `routes`. */
function endpointsOf(options: ResolvedEmulatorOptions, { tokens, store }: ServiceParts): Endpoint[] {
  const subscriptions = new SubscriptionOperations(options, tokens, store)
  const update = resolvedRoute('update', options.routes?.update)
  const unsubscribe = resolvedRoute('unsubscribe', options.routes?.unsubscribe)
  return [
    {
      operation: 'token',
      ...endpoints.token,
      answer: async (request) => {
        // In a path a plus sign is no space.
        if (decodeFormComponent(request.variable.replaceAll('+', '%2B')) !== options.domain)
          throw new Refusal(404, 'There is no such domain', { code: 'not_found' })
        return answerTokenRequest(options, tokens, request)
      },
    },
    { operation: 'create', ...endpoints.create, answer: (request) => subscriptions.create(request) },
    { operation: 'update', ...update, answer: (request) => subscriptions.update(update, request) },
    {
      operation: 'unsubscribe',
      ...unsubscribe,
      answer: (request) => subscriptions.unsubscribe(unsubscribe, request),
    },
  ]
}

/**
 * The text in the place of the variable if a target fits a path, empty if the path has no variable; `undefined` if the
 * target does not fit. A query counts only if the path has one, and must then be written as there.
 */
function variableIn(target: string, path: string): string | undefined {
  const text = path.includes('?') ? target : target.replace(/\?.*/s, '')
  const [, before = '', variable, after = ''] = /^([^{]*)\{(\w+)\}(.*)$/.exec(path) ?? []
  if (variable === undefined) return text === path ? '' : undefined
  if (!text.startsWith(before) || !text.endsWith(after)) return undefined
  const value = text.slice(before.length, text.length - after.length)
  return (variable === 'subscriptionId' ? /^\d+$/ : /^[^/]+$/).test(value) ? value : undefined
}

function sent({ status, headers, body }: ServiceAnswer): Sent {
  if (body === undefined) return { status, headers, body: '' }
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }
}
