/** Sends a subscription call with its Authorization header, once more with new credentials after a 401. */
import { type Answer, type SendOptions, send } from '../http/send.js'
import type { HttpRequest, UnauthorizedRequest } from '../http/transport.js'
import type { Authorization, Authorizer } from './authorizer.js'

/** @param options - `deadline` belongs to this call alone, and is ended when the call is over, however that ends */
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
    options.log('info', { method: request.method }, 'Access token rejected; repeating with a new one')
    // Awaited here and not by the caller, because `finally` ends the deadline.
    return await send(withAuthorization(request, second, first.secrets), options)
  } finally {
    deadline.end()
  }
}

/** @param seenBefore - secrets of an earlier request, which the server may show all the same */
function withAuthorization(
  { method, address, body, headers, secrets }: UnauthorizedRequest,
  authorization: Authorization,
  seenBefore: readonly string[] = [],
): HttpRequest {
  return {
    method,
    address,
    headers: headersWith(authorization.header, headers, body !== undefined),
    body,
    secrets: () => [...secrets, ...authorization.secrets, ...seenBefore],
  }
}

/** Every answer with a body is JSON (docs/service.md, Endpoints). */
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
