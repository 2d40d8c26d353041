/** An answer as the rest of the package reads it. Secrets are removed when a text is read, and not before. */
import type * as z from 'zod'
import { type Issue, type NotificationError, ResponseValidationError } from '../errors.js'
import { redact, redactTokens } from '../shared/redact.js'
import { provesCreate } from '../shared/statuses.js'
import { excerpt } from '../shared/text.js'
import { parseJson, validate } from '../shared/validation.js'
import { type Words, worded } from '../shared/words.js'
import type { HttpResponse, UnauthorizedRequest } from './exchange.js'
import { intermediaryOf } from './intermediary.js'

/** The answer to one attempt, whatever its status. */
export class Answer {
  readonly status: number
  /** The address, without its query. */
  readonly url: string
  /** As received, so it may hold a secret: errors take {@link Answer.text}. */
  readonly body: string
  readonly bodyComplete: boolean
  readonly #response: HttpResponse
  readonly #request: UnauthorizedRequest
  readonly #secrets: () => readonly string[]

  /** @param secrets - every secret that was sent, also by earlier attempts */
  constructor(response: HttpResponse, request: UnauthorizedRequest, secrets: () => readonly string[]) {
    this.status = response.status
    this.url = request.address.shown
    this.body = response.body
    this.bodyComplete = response.bodyComplete
    this.#response = response
    this.#request = request
    this.#secrets = secrets
  }

  /** What made the answer instead of the service. A page or a challenge can have any status, also 200 or 202. */
  get intermediary(): string | undefined {
    return provesCreate(this.status) ? undefined : intermediaryOf(this.#response)
  }

  get retryAfterMs(): number | undefined {
    const { header } = this.#response
    return parseRetryAfterMs(header('retry-after'), header('date'))
  }

  /** The first header with an id that can be shown: visible ASCII, at most 200 characters. */
  get requestId(): string | undefined {
    const id = requestIdHeaders
      .map((name) => this.#response.header(name))
      .find((value) => value !== undefined && /^[\x21-\x7e]{1,200}$/.test(value))
    if (id === undefined) return undefined
    // A server may return anything, even a secret.
    const hidden = [...this.#secrets(), ...(this.#request.secretsIn?.(this.body) ?? [])]
    return redactTokens(redact(id, hidden)) === id ? id : undefined
  }

  /** How a message about this answer begins. @param reason - what the server says, on one line */
  failure(reason = ''): string {
    return `Could not ${this.#request.action}: ${this.url} answered ${this.status}${reason && ` (${reason})`}`
  }

  /** The fields of every error about an answer that is no success. */
  get details() {
    const { intermediary, requestId, retryAfterMs, status, url } = this
    return { status, url, requestId, intermediary, body: this.text(), retryAfterMs }
  }

  /** A header as errors show it. */
  header(name: string): string | undefined {
    const value = this.#response.header(name)
    return value && this.redact(value)
  }

  /** The body as errors show it. */
  text(): string {
    // The header alone proves nothing: a `fetch` decodes the body, and keeps the header.
    const encoding = this.body.includes('\ufffd') && this.#encoding()
    return encoding ? `[not read: it is encoded as ${encoding}]` : this.redact(this.body)
  }

  #encoding(): string | undefined {
    const encoding = this.header('content-encoding')
    return encoding && excerpt(encoding, 50)
  }

  /** Makes a text from this answer safe to show in an error. */
  redact(text: string): string {
    const rest = redact(text, this.#secrets(), { cutOff: !this.bodyComplete })
    return this.#request.secretsIn === undefined ? rest : redactTokens(rest)
  }

  /** The body, which is JSON. Throws what `invalid` makes if the body cannot be used. */
  json<Output>(schema: z.ZodType<Output>, invalid: (issues: readonly Issue[]) => NotificationError): Output {
    const json = this.bodyComplete ? parseJson(this.body) : undefined
    if (json !== undefined) return validate(schema, json, invalid)
    const encoding = this.#encoding()
    const notJson = `is not JSON${encoding ? `: it is encoded as ${encoding}` : ''}`
    throw invalid([{ path: [], message: this.bodyComplete ? notJson : 'is incomplete or too long' }])
  }
}

/** The error for a success whose body cannot be used. */
export function unusableAnswer(
  answer: Answer,
  words: Words,
  issues: readonly Issue[],
): ResponseValidationError {
  const { requestId, status, url } = answer
  const details = { status, url, requestId, body: answer.text(), issues }
  return worded(words, (message) => new ResponseValidationError(message, details))
}

/** Headers in which services, load balancers and networks name a request. */
const requestIdHeaders = ['x-request-id', 'x-correlation-id', 'x-amzn-trace-id', 'cf-ray']

/** Reads `Retry-After`, seconds or a date (RFC 9110 section 10.2.3), as milliseconds from now. Some servers send a fraction. */
function parseRetryAfterMs(value: string | undefined, sent: string | undefined): number | undefined {
  // More digits would be centuries.
  if (/^\d{1,10}(?:\.\d{1,20})?$/.test(value ?? '')) return Math.ceil(Number(value) * 1_000)
  const at = parseDate(value)
  // From the server's `Date`: its clock and ours may differ.
  return Number.isNaN(at) ? undefined : Math.max(0, at - (parseDate(sent) || Date.now()))
}

/** An HTTP date (RFC 9110 section 5.6.7) without its obsolete forms, or `NaN`. */
function parseDate(text = ''): number {
  return /^[A-Z][a-z]{2}, [\w :]{20,21} GMT$/.test(text) ? Date.parse(text) : Number.NaN
}
