/**
 * Sends a subscription call with its Authorization header, once more with new credentials after a 401. With the answer
 * the deadline ends.
 */
import { type Answer, type SendOptions, send } from '../http/send.js'
import type { HttpRequest, UnauthorizedRequest } from '../http/transport.js'
import type { Authorization, Authorizer } from './authorizer.js'

export async function sendAuthorized(
  request: UnauthorizedRequest,
  authorizer: Authorizer,
  options: SendOptions,
): Promise<Answer> {
  const { deadline } = options
  try {
    const first = await authorizer.authorize(deadline)
    const answer = await send(withAuthorization(request, first), options)
    if (answer.status !== 401) return answer
    const second = await authorizer.reauthorize(first, deadline)
    if (second === undefined) return answer
    options.logger.info({ method: request.method }, 'Access token rejected; repeating with a new one')
    return await send(withAuthorization(request, second), options)
  } finally {
    deadline.end()
  }
}

function withAuthorization(
  { method, url, body, headers, secrets }: UnauthorizedRequest,
  authorization: Authorization,
): HttpRequest {
  return {
    method,
    url,
    headers: headersWith(authorization.header, headers, body !== undefined),
    body,
    secrets: () => [...secrets, ...authorization.secrets],
  }
}

/** Every answer is JSON (interface.md sections 2.1 and 4.2). */
const accept = 'application/json'
const form = 'application/x-www-form-urlencoded'

function headersWith(
  authorization: string,
  headers: UnauthorizedRequest['headers'],
  hasBody: boolean,
): Record<string, string> {
  // Written out, because most calls have no more, and undici takes its time over objects made by spreading.
  if (headers === undefined && hasBody) return { accept, authorization, 'content-type': form }
  return { ...headers, accept, authorization, ...(hasBody && { 'content-type': form }) }
}
