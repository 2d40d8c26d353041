/** Sends a subscription call with its Authorization header, once more with new credentials after a 401. */
import { type Answer, type SendOptions, send } from '../http/send.js'
import type { HttpRequest } from '../http/transport.js'
import type { Authorization, Authorizer } from './authorizer.js'

export async function sendAuthorized(
  request: HttpRequest,
  authorizer: Authorizer,
  options: SendOptions,
): Promise<Answer> {
  const { deadline } = options
  const first = await authorizer.authorize(deadline)
  const answer = await send(withAuthorization(request, first), options)
  if (answer.status !== 401) return answer
  const second = await authorizer.reauthorize(first, deadline)
  if (second === undefined) return answer
  options.logger.info({ method: request.method }, 'Access token rejected; repeating with a new one')
  return send(withAuthorization(request, second), options)
}

function withAuthorization(request: HttpRequest, { header, secrets }: Authorization): HttpRequest {
  return {
    ...request,
    headers: { ...request.headers, authorization: header },
    secrets: [...request.secrets, ...secrets],
  }
}
