/** A callback route for AWS Lambda. */
import { excerpt } from '../../shared/text.js'
import { invalidDelivery } from '../body.js'
import { coreOf } from '../core.js'
import { routeError } from '../options.js'
import type { CallbackReceiver } from '../receiver.js'

/** The parts of an event that the handler uses: of an API Gateway (1.0 and 2.0), a load balancer, a function URL or VPC Lattice. */
export interface LambdaEvent {
  /** The HTTP method, in payload format 1.0 and from a load balancer. */
  readonly httpMethod?: string | undefined
  /** The HTTP method, from VPC Lattice, and from an API Gateway whose integration is no proxy. */
  readonly method?: string | undefined
  /** What AWS knows of the request: in payload format 2.0 and from a function URL also the method, as `http.method`. */
  readonly requestContext?: object | undefined
  /** The headers, each with one value, or with all of its values. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>> | null | undefined
  /** The headers, each with all of its values. */
  readonly multiValueHeaders?: Readonly<Record<string, readonly string[] | undefined>> | null | undefined
  readonly body?: string | null | undefined
  readonly isBase64Encoded?: boolean | undefined
}

/** The result of the function, as each of the services takes it. */
export interface LambdaAnswer {
  statusCode: number
  headers: Record<string, string>
  /** The same headers, if the event has `multiValueHeaders`: then some load balancers read no others. */
  multiValueHeaders?: Record<string, string[]>
  /** Empty. */
  body: string
  /** Always `false`. */
  isBase64Encoded: boolean
}

/**
 * Makes the handler of a Lambda function behind an API Gateway (REST or HTTP API), an application load balancer, a function URL
 * or VPC Lattice. Lambda freezes handlers that still run after the answer (`ackTimeoutMs`): put long work into a queue.
 *
 * @throws `ConfigurationError` for what is no receiver; the function rejects with one if the event is no HTTP request
 *
 * @example
 * ```ts
 * export const handler = toLambdaHandler(receiver)
 * ```
 */
export function toLambdaHandler(receiver: CallbackReceiver): (event: LambdaEvent) => Promise<LambdaAnswer> {
  const core = coreOf(receiver)
  return async (event) => {
    const { requestContext, httpMethod, method: plainMethod, ...rest }: LambdaEvent = Object(event)
    const { headers, multiValueHeaders, body, isBase64Encoded } = rest
    const method = Object(requestContext).http?.method ?? httpMethod ?? plainMethod
    // An answer, even 405, would be a success to a queue or a schedule.
    if (method === undefined) {
      const keys = excerpt(Object.keys(Object(event)).join(', ') || 'none', 100)
      throw routeError(
        `the event is not an HTTP request of API Gateway, a load balancer or a function URL (its keys: ${keys}): for a queue use parseDelivery (docs/deployment.md)`,
      )
    }
    // A middleware may have parsed the body, and left `isBase64Encoded` as it was.
    const isEncoded = isBase64Encoded && typeof body === 'string' && body !== ''
    const readBody = () => ({ body: isEncoded ? bytesOfBase64(body) : (body ?? '') })
    const { answer } = await core.receive(method, headers ?? multiValueHeaders, readBody)
    const answerLists = Object.entries(answer.headers).map(([name, value]) => [name, [value]])
    return {
      statusCode: answer.status,
      headers: answer.headers,
      ...(multiValueHeaders && { multiValueHeaders: Object.fromEntries(answerLists) }),
      body: '',
      isBase64Encoded: false,
    }
  }
}

function bytesOfBase64(body: string): Uint8Array {
  try {
    return Uint8Array.from(atob(body), (each) => each.charCodeAt(0))
  } catch (cause) {
    throw invalidDelivery(body, 'is not in base64, as its event says', cause)
  }
}
