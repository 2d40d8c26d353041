/** One exchange over an undici dispatcher, as the handler that undici reports its progress to. */
import { toConnectionError } from './connection-error.js'
import type { Deadline } from './deadline.js'
import { BodyText, type HttpRequest, type HttpResponse, isBodyNeeded } from './transport.js'

/**
 * Undici starts a handler as soon as a connection stands, and neither while the connection is being made nor while all
 * are busy: until then the server has surely not seen the request.
 *
 * A handler rather than `dispatcher.request`, which makes a stream of every body and thereby costs a fifth of the
 * throughput. The methods are those that undici 6 asks for and that 7 calls without a detour.
 */
export class Exchange {
  readonly #request: HttpRequest
  readonly #deadline: Deadline
  readonly #resolve: (response: HttpResponse) => void
  readonly #reject: (reason: unknown) => void
  readonly #text = new BodyText()
  readonly #onAbort = () => this.#breakOff()
  #abort: ((reason: Error) => void) | undefined
  #isSent = false
  #isOver = false
  #status = 0
  #retryAfter: string | undefined

  constructor(
    request: HttpRequest,
    deadline: Deadline,
    resolve: (response: HttpResponse) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#request = request
    this.#deadline = deadline
    this.#resolve = resolve
    this.#reject = reject
    deadline.onAbort(this.#onAbort)
  }

  onConnect(abort: (reason: Error) => void): void {
    this.#abort = abort
    if (this.#isOver) {
      abort(abandoned())
      return
    }
    this.#isSent = true
    this.#deadline.requestLeft()
  }

  onHeaders(status: number, rawHeaders: readonly Uint8Array[]): void {
    // `Retry-After` is ignored on success.
    this.begin(status, isBodyNeeded(status) ? undefined : retryAfterIn(rawHeaders))
  }

  onData(piece: Uint8Array): void {
    if (this.#isOver || this.#text.add(piece)) return
    this.#answer(false)
    this.#abort?.(abandoned())
  }

  onComplete(): void {
    this.#answer(true)
  }

  onError(error: unknown): void {
    if (this.#status !== 0 && !isBodyNeeded(this.#status)) this.#answer(false)
    else this.#fail(toConnectionError(error, this.#request, this.#isSent))
  }

  protected begin(status: number, retryAfter: string | undefined): void {
    // 1xx answers come before the one that counts (RFC 9110 section 15.2).
    if (status < 200) return
    this.#status = status
    this.#retryAfter = retryAfter
  }

  #answer(bodyComplete: boolean): void {
    if (!this.#end()) return
    const body = this.#text.toString()
    this.#resolve({ status: this.#status, retryAfter: this.#retryAfter, body, bodyComplete })
  }

  #fail(reason: unknown): void {
    if (this.#end()) this.#reject(reason)
  }

  #breakOff(): void {
    this.#fail(this.#deadline.reason)
    this.#abort?.(abandoned())
  }

  #end(): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#deadline.removeListener(this.#onAbort)
    return true
  }
}

/** An exchange over a dispatcher of any version: undici 8 calls methods of other names, and 7 knows both. */
export class AnyVersionExchange extends Exchange {
  onRequestStart(controller: { abort(reason: Error): void }): void {
    this.onConnect((reason) => controller.abort(reason))
  }

  onResponseStart(
    _controller: unknown,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    const retryAfter = headers['retry-after']
    this.begin(status, Array.isArray(retryAfter) ? retryAfter[0] : retryAfter)
  }

  onResponseData(_controller: unknown, piece: Uint8Array): void {
    this.onData(piece)
  }

  onResponseEnd(): void {
    this.onComplete()
  }

  onResponseError(_controller: unknown, error: unknown): void {
    this.onError(error)
  }
}

/** The reason that undici is given for an abort. Nobody sees this error, because the exchange is over by then. */
function abandoned(): Error {
  return new Error('the request is abandoned')
}

function retryAfterIn(rawHeaders: readonly Uint8Array[]): string | undefined {
  const name = rawHeaders.findIndex((text, index) => index % 2 === 0 && /^retry-after$/i.test(`${text}`))
  return name === -1 ? undefined : `${rawHeaders[name + 1]}`
}
