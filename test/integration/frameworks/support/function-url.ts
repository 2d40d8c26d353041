/** What AWS does between a function URL and its function, as far as a callback meets it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'

/** The parts of an event in payload format 2.0 that docs/receiver.md and adapters use. */
export interface FunctionUrlEvent {
  readonly version?: '2.0'
  readonly routeKey?: '$default'
  readonly rawPath?: string
  readonly rawQueryString?: string
  readonly requestContext: {
    readonly http: { readonly method: string; readonly path?: string; readonly sourceIp?: string }
  }
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body?: string | undefined
  readonly isBase64Encoded: boolean
}

export type LambdaHandler = (
  event: FunctionUrlEvent,
) => Promise<{ statusCode: number; headers: Record<string, string>; body: string }>

/** Makes a request listener that calls the function with events in payload format 2.0. */
export function functionUrl(handler: LambdaHandler) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request)
    const { statusCode, headers, body: answer } = await handler(eventOf(request, body))
    response.writeHead(statusCode, headers).end(answer)
  }
}

function eventOf({ method = '', url: path = '', headers }: IncomingMessage, body: Buffer): FunctionUrlEvent {
  // Text arrives as text, everything else in base64.
  const isBase64Encoded = !/^(text\/|application\/(json|xml|javascript))/i.test(headers['content-type'] ?? '')
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: '',
    requestContext: { http: { method, path, sourceIp: '192.0.2.1' } },
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, [value].flat().join(',')]),
    ),
    body: body.toString(isBase64Encoded ? 'base64' : 'utf8'),
    isBase64Encoded,
  }
}
