/** What the answers to all subscription calls have in common (docs/service.md, Errors). */
import { ApiError, type ApiErrorDetails, ResponseValidationError } from '../errors.js'
import type { Answer } from '../http/send.js'

export function isSuccess({ status }: Answer): boolean {
  return status >= 200 && status <= 299
}

/** @param attempt - what was tried, as the rest of a sentence */
export function apiError(
  answer: Answer,
  attempt: string,
  { mayHaveTakenEffect = false }: { mayHaveTakenEffect?: boolean } = {},
): ApiError {
  const { status } = answer
  const doubt = mayHaveTakenEffect ? ' It may have taken effect all the same; repeating it is safe.' : ''
  return new ApiError(
    `Could not ${attempt}: the service answered ${status}. ${advice(answer)}${doubt}`,
    detailsOf(answer),
  )
}

function advice({ status, retryAfterMs }: Answer): string {
  if (status >= 300 && status <= 399) return 'Redirects are not followed: set `baseUrl` to the final address.'
  if (status === 401)
    return 'It does not accept the credentials: check `auth`, and that access was activated.'
  if (status === 403)
    return 'The credentials are known but do not permit this: ask for access to be extended.'
  if (status === 404) return 'Check `baseUrl`: there is no subscription service at that address.'
  if (status === 429 || status === 503) {
    const when = retryAfterMs === undefined ? 'later' : `in ${Math.ceil(retryAfterMs / 1_000)} s`
    return `It is busy: try again ${when}.`
  }
  if (status >= 500) return 'It failed: try again later.'
  return 'What it says about that is in error.body.'
}

/** @throws `ResponseValidationError` for a page of HTML or XML, which something else than the service wrote */
export function refuseForeignPage(answer: Answer, attempt: string): void {
  const { status, url, body } = answer
  if (!body.trimStart().startsWith('<')) return
  const issues = [{ path: [], message: 'is a page of HTML or XML' }]
  throw new ResponseValidationError(
    `Could not ${attempt}: something answered ${status} with a page at ${url}, perhaps a login or a proxy, ` +
      'and not the service. Check `baseUrl`, and the network in between.',
    { status, url, body: answer.redact(body), issues },
  )
}

/** What every error about an answer carries. */
export function detailsOf(answer: Answer): ApiErrorDetails {
  const { status, url, body, retryAfterMs } = answer
  return { status, url, body: answer.redact(body), retryAfterMs }
}
