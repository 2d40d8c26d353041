/** The answer to a request. */
import type * as z from 'zod'
import type { Issue, NotificationError } from '../errors.js'
import { parseJson } from '../shared/json.js'
import { excerpt } from '../shared/text.js'
import { validate } from '../shared/validation.js'
import { redact, redactTokens } from './redact.js'
import type { Address, HttpResponse } from './transport.js'

/** The part of a request that its answer needs. */
export interface AnsweredRequest {
  readonly address: Address
  /** What the request does, as the rest of "Could not …", e.g. `unsubscribe`. */
  readonly purpose: string
  /** Secrets in the body of an answer, so that no log line shows one that a header repeats. */
  readonly secretsIn?: ((body: string) => readonly string[]) | undefined
}

/** The answer to the last attempt, whatever its status. */
export interface Answer extends Omit<HttpResponse, 'header'> {
  /** The address that answered, without its query. */
  readonly url: string
  readonly retryAfterMs: number | undefined
  readonly requestId: string | undefined
  /** The `Content-Encoding`, if the server sent one although requests ask for none. */
  readonly encoding: string | undefined
  /** As in {@link AnsweredRequest}. */
  readonly purpose: string
  /** Makes a text from this answer safe to show in an error: removes the request's secrets. */
  redact(text: string): string
}

/** @param secrets - those of the request */
export function answerOf(
  { address, purpose, secretsIn }: AnsweredRequest,
  response: HttpResponse,
  secrets: () => readonly string[],
): Answer {
  const { body, bodyComplete, status } = response
  const encoding = response.header('content-encoding')
  return {
    url: address.shown,
    status,
    body,
    bodyComplete,
    retryAfterMs: parseRetryAfterMs(response.header('retry-after')),
    requestId: requestIdOf(response, () => [...secrets(), ...(secretsIn?.(body) ?? [])]),
    encoding: encoding === undefined ? undefined : excerpt(encoding, 50),
    purpose,
    redact: (text) => redact(text, secrets(), { cutOff: !bodyComplete }),
  }
}

/**
 * The JSON body of an answer.
 *
 * @param refuse - makes the error for a body that cannot be used
 */
export function readJson<Output>(
  { body, bodyComplete, encoding }: Answer,
  schema: z.ZodType<Output>,
  refuse: (issues: readonly Issue[]) => NotificationError,
): Output {
  const problem = (message: string) => refuse([{ path: [], message }])
  if (!bodyComplete) throw problem('is incomplete or too long')
  const json = parseJson(body)
  if (json !== undefined) return validate(schema, json, refuse)
  throw problem(
    encoding === undefined ? 'is not JSON' : `is encoded as ${encoding}, which the request did not ask for`,
  )
}

/** Reads `Retry-After`, seconds or an HTTP date (RFC 9110 section 10.2.3), as milliseconds from now. */
function parseRetryAfterMs(value: string | undefined): number | undefined {
  const text = value?.trim()
  if (text === undefined || text.length > 100) return undefined
  // A value with more digits is ignored: it would be centuries.
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1_000
  // An HTTP date begins with the name of a day. Without this check Date.parse would read "1.5" or "-1" as years.
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return undefined
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now())
}

/** Headers in which services, load balancers and networks name a request. */
const requestIdHeaders = ['x-request-id', 'x-correlation-id', 'x-amzn-trace-id', 'cf-ray']

/** The first of the {@link requestIdHeaders} that can be shown: visible ASCII, at most 200 characters. */
function requestIdOf(response: HttpResponse, secrets: () => readonly string[]): string | undefined {
  const canBeShown = (id: string) => id.length <= 200 && /^[\x21-\x7e]+$/.test(id)
  const id = requestIdHeaders
    .map((name) => response.header(name))
    .find((value) => value !== undefined && canBeShown(value))
  // A server may return anything, even a secret.
  return id === undefined || redactTokens(redact(id, secrets())) !== id ? undefined : id
}
