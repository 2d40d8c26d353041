/** The HTTP surface of the service: from a request to its Response (docs/service.md, Endpoints). */
import { setTimeout as sleep } from 'node:timers/promises'
import { BoundedBytes } from '../../shared/bounded-bytes.js'
import { idPlace } from '../../shared/routes.js'
import { isBodiless } from '../../shared/statuses.js'
import { messageOf } from '../../shared/text.js'
import { type Activity, beginningOf } from '../activity.js'
import { ConnectionReset, type Fault, type Faults } from '../faults.js'
import type { ResolvedEmulatorOptions } from '../options.js'
import { injectedFault } from '../words.js'
import { type About, type Endpoint, Refusal } from './endpoint.js'
import { subscriptionEndpoints } from './subscription-endpoints.js'
import type { SubscriptionStore } from './subscription-store.js'
import { type TokenIssuer, tokenEndpoint } from './token-endpoint.js'

/** A larger request body is refused with 413; no limit is documented (docs/service.md, Limits). */
export const maxBodyBytes = 1024 * 1024

/** A request as it comes over HTTP: a `Request` cannot have every method and target. */
export interface IncomingRequest {
  readonly method: string
  /** Path and query. */
  readonly target: string
  readonly headers: Headers
  readonly body: Parameters<BoundedBytes['addAll']>[0]
  /** Aborted when the sender no longer waits. */
  readonly signal?: AbortSignal
}

/** What requests and callbacks share. */
export interface EmulatorParts {
  readonly store: SubscriptionStore
  readonly faults: Faults
  readonly activity: Activity
  readonly tokens: TokenIssuer
  /** Aborted when the emulator closes: delayed answers and callbacks in flight are given up then. */
  readonly closing: AbortSignal
}

export class NotificationService {
  readonly #parts: EmulatorParts
  readonly #endpoints: readonly Endpoint[]

  constructor(options: ResolvedEmulatorOptions, parts: EmulatorParts) {
    const { store, tokens } = parts
    this.#parts = parts
    this.#endpoints = [tokenEndpoint(options, tokens), ...subscriptionEndpoints(options, tokens, store)]
  }

  /** @throws `ConnectionReset` where a fault breaks the connection */
  async handle(request: IncomingRequest): Promise<Response> {
    const { method, target, headers, signal = this.#parts.closing } = request
    if (this.#parts.closing.aborted) throw new ConnectionReset('The emulator is closed')
    const received = new BoundedBytes(maxBodyBytes)
    const isComplete = await received.addAll(request.body)
    const body = received.text
    const { operation, path, variable, ...endpoint } = this.#find(method, target)
    const about: About = path.includes(idPlace) ? { subscriptionId: Number(variable) } : {}
    const fault = this.#parts.faults.take(operation)
    const sent = { operation, method, body, path: target, headers: Object.fromEntries(headers) }
    const finish = this.#parts.activity.beginRequest({ ...sent, ...(fault && { fault }) })
    const answer = async (): Promise<Response> => {
      try {
        if (!isComplete) {
          throw new Refusal(413, `The request body is over ${maxBodyBytes} bytes`, 'content_too_large')
        }
        return await endpoint.answer({ headers, body, variable, about })
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        const { status, message, code, subscriptionId } = error
        about.refusal = { code, message, ...(subscriptionId !== undefined && { subscriptionId }) }
        const reason = operation === 'token' ? { error_description: message } : { message }
        const headers = { 'cache-control': 'no-store', ...error.headers }
        return Response.json({ error: code, ...reason }, { status, headers })
      }
    }
    try {
      const response = await this.#withFault(fault, signal, answer)
      const body = beginningOf(await response.clone().text())
      const { status } = response
      finish({ status, answer: { headers: Object.fromEntries(response.headers), ...body }, ...about })
      return response
    } catch (error) {
      finish({ error: error instanceof ConnectionReset ? error.reason : messageOf(error), ...about })
      throw error
    }
  }

  async #withFault(
    fault: Fault | undefined,
    signal: AbortSignal,
    answer: () => Promise<Response>,
  ): Promise<Response> {
    if (fault === undefined) return answer()
    if ('status' in fault) {
      const { status, headers = {}, body } = fault
      return new Response(isBodiless(status) ? null : body, { status, headers })
    }
    if ('delayMs' in fault) {
      const { closing } = this.#parts
      const either = AbortSignal.any([closing, signal])
      await sleep(fault.delayMs, undefined, { signal: either }).catch(() => {
        throw closing.aborted
          ? new ConnectionReset('The emulator was closed before its answer')
          : signal.reason
      })
      return answer()
    }
    if ('malformedBody' in fault) {
      const response = await answer()
      const body = await response.text()
      const half = body.slice(0, body.length / 2) || '{'
      return new Response(fault.malformedBody === true ? half : fault.malformedBody, response)
    }
    if (fault.reset === 'after-processing') await answer()
    throw new ConnectionReset(`${injectedFault} broke the connection ${fault.reset.replace('-', ' ')}`)
  }

  /** The endpoint of a request, with the text in the place of its variable. */
  #find(method: string, target: string): Endpoint & { readonly variable: string } {
    const matches = this.#endpoints.flatMap((endpoint) => {
      const variable = variableIn(target, endpoint.path)
      return variable === undefined ? [] : [{ ...endpoint, variable }]
    })
    const found = matches.find((endpoint) => endpoint.method === method)
    if (found !== undefined) return found
    const allow = matches.map((endpoint) => endpoint.method).join(', ')
    const refusal =
      allow === ''
        ? new Refusal(404, 'There is nothing at this path', 'not_found')
        : new Refusal(405, `Only ${allow} is allowed here`, 'method_not_allowed', { allow })
    return { operation: 'unknown', method, path: '', variable: '', answer: () => Promise.reject(refusal) }
  }
}

/**
 * The text in the place of the variable if a target fits a path, empty if the path has no variable; `undefined` if the
 * target does not fit. A query counts only if the path has one, and must then be written as there.
 */
function variableIn(target: string, path: string): string | undefined {
  const text = path.includes('?') ? target : target.replace(/\?.*/s, '')
  const [before = '', after] = path.split(/\{\w+\}/)
  if (after === undefined) return text === before ? '' : undefined
  if (!text.startsWith(before) || !text.endsWith(after)) return undefined
  const value = text.slice(before.length, text.length - after.length)
  return (path.includes(idPlace) ? /^\d+$/ : /^[^/]+$/).test(value) ? value : undefined
}
