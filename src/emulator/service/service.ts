/** The HTTP surface of the service, from a web-standard Request to its Response (docs/service.md, Endpoints). */
import { readUpTo } from '../../shared/bounded-bytes.js'
import { messageOf } from '../../shared/text.js'
import type { Activity } from '../activity.js'
import { ConnectionReset, delay, type EmulatorOperation, type Fault, type FaultPlan } from '../faults.js'
import { Refusal } from './requests.js'
import type { SubscriptionEndpoints } from './subscription-endpoints.js'
import type { TokenEndpoint } from './token-endpoint.js'

/** A larger request body is refused with 413; no limit is documented (docs/service.md, Limits). */
export const maxBodyBytes = 1024 * 1024

interface Route {
  readonly operation: EmulatorOperation | 'unknown'
  answer(headers: Headers, body: string): Promise<Response>
}

export interface ServiceParts {
  readonly domain: string
  readonly tokenEndpoint: TokenEndpoint
  readonly subscriptionEndpoints: SubscriptionEndpoints
  readonly faults: FaultPlan
  readonly activity: Activity
  /** Aborted when the emulator closes: delayed answers are given up then. */
  readonly closing: AbortSignal
}

export class NotificationService {
  readonly #parts: ServiceParts

  constructor(parts: ServiceParts) {
    this.#parts = parts
  }

  /**
   * Answers a request. `method` is for requests over HTTP, since a `Request` cannot have every method.
   *
   * @throws `ConnectionReset` where a fault breaks the connection
   */
  async handle(request: Request, method = request.method): Promise<Response> {
    const { pathname, search } = new URL(request.url)
    const { headers } = request
    const { text: body, isComplete } = await readBody(request)
    const route = this.#route(method, pathname)
    const fault = this.#parts.faults.takeForRequest(route.operation)
    const finish = this.#parts.activity.beginRequest({
      operation: route.operation,
      method,
      path: pathname + search,
      headers: Object.fromEntries(headers),
      body,
      ...(fault && { fault }),
    })
    let refusal: Refusal | undefined
    const answer = async () => {
      try {
        if (isComplete) return await route.answer(headers, body)
        throw new Refusal(413, 'content_too_large', `The request body is over ${maxBodyBytes} bytes`)
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        refusal = error
        return refusalAsResponse(route.operation, error)
      }
    }
    try {
      const response = await this.#withFault(fault, request.signal, answer)
      const { status } = response
      finish(refusal ? { status, refusal: { code: refusal.code, message: refusal.message } } : { status })
      return response
    } catch (error) {
      finish({ error: error instanceof ConnectionReset ? error.reason : messageOf(error) })
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
      // The fetch standard allows no body with these statuses.
      const body = [204, 205, 304].includes(fault.status) ? null : (fault.body ?? '')
      return new Response(body, { status: fault.status, headers: { ...fault.headers } })
    }
    if ('delayMs' in fault) {
      await this.#delay(fault.delayMs, signal)
      return answer()
    }
    if ('malformedBody' in fault) return withMalformedBody(await answer(), fault.malformedBody)
    if (fault.reset === 'after-processing') await answer()
    throw new ConnectionReset(`An injected fault broke the connection ${fault.reset.replace('-', ' ')}`)
  }

  async #delay(delayMs: number, requestSignal: AbortSignal): Promise<void> {
    try {
      await delay(delayMs, AbortSignal.any([this.#parts.closing, requestSignal]))
    } catch {
      requestSignal.throwIfAborted()
      throw new ConnectionReset('The emulator was closed before its answer')
    }
  }

  #route(method: string, pathname: string): Route {
    const { tokenEndpoint, subscriptionEndpoints } = this.#parts
    const realm = /^\/auth\/realms\/([^/]+)\/protocol\/openid-connect\/token$/.exec(pathname)?.[1]
    if (realm !== undefined) {
      if (method !== 'POST') return methodNotAllowed('POST')
      if (decodePathSegment(realm) !== this.#parts.domain) {
        return refuse('token', new Refusal(404, 'not_found', 'There is no such domain'))
      }
      return { operation: 'token', answer: (headers, body) => tokenEndpoint.issue(headers, body) }
    }
    if (pathname === '/api/subscriptions') {
      if (method !== 'POST') return methodNotAllowed('POST')
      return { operation: 'create', answer: (headers, body) => subscriptionEndpoints.create(headers, body) }
    }
    const digits = /^\/api\/subscriptions\/(\d+)$/.exec(pathname)?.[1]
    if (digits !== undefined) {
      const id = Number(digits)
      if (method === 'PUT') {
        return {
          operation: 'update',
          answer: (headers, body) => subscriptionEndpoints.update(headers, body, id),
        }
      }
      if (method === 'DELETE') {
        return {
          operation: 'unsubscribe',
          answer: (headers) => subscriptionEndpoints.unsubscribe(headers, id),
        }
      }
      return methodNotAllowed('PUT, DELETE')
    }
    return refuse('unknown', new Refusal(404, 'not_found', 'There is nothing at this path'))
  }
}

function methodNotAllowed(allow: string): Route {
  return refuse('unknown', new Refusal(405, 'method_not_allowed', `Only ${allow} is allowed here`, { allow }))
}

function refuse(operation: Route['operation'], refusal: Refusal): Route {
  return { operation, answer: () => Promise.reject(refusal) }
}

function decodePathSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

function refusalAsResponse(
  operation: Route['operation'],
  { status, code, message, headers }: Refusal,
): Response {
  const body = operation === 'token' ? { error: code, error_description: message } : { error: code, message }
  return Response.json(body, { status, headers: { 'cache-control': 'no-store', ...headers } })
}

async function withMalformedBody(response: Response, malformedBody: string | true): Promise<Response> {
  const { status, headers } = response
  if (malformedBody !== true) return new Response(malformedBody, { status, headers })
  const text = await response.text()
  return new Response(text === '' ? '{' : text.slice(0, text.length / 2), { status, headers })
}

async function readBody(request: Request): Promise<{ text: string; isComplete: boolean }> {
  const { bytes, isComplete } = await readUpTo(maxBodyBytes, request.body ?? [])
  return { text: Buffer.from(bytes).toString('utf8'), isComplete }
}
