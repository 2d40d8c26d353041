/** Remembers what arrived, for tests that ask what a client really sent. */
import { beginningOf, History, type Outcome, type RecordedEntry } from '../activity/history.js'
import type { EmulatorOperation, Fault } from './faults.js'

/** A request that arrived. Nothing in it is blanked out: credentials and tokens stand there as they were sent. */
export interface RecordedRequest extends RecordedEntry {
  /** `unknown` for a path or method that the service does not have. */
  readonly operation: EmulatorOperation | 'unknown'
  /** The HTTP method. */
  readonly method: string
  /** Path and query, as sent. */
  readonly path: string
  /** The headers, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The body as text, its first 16,384 characters. */
  readonly body: string
  /** How many characters the whole body has; of a body over 1 MiB, the part that was read. */
  readonly bodyLength: number
  /** The injected fault that the request met. */
  readonly fault?: Fault
  /** Why the emulator refused the request: the code and the sentence that its answer has. */
  readonly refusal?: {
    /** One word for the reason, such as `duplicate_subscription`. */
    readonly code: string
    /** The reason as a sentence. */
    readonly message: string
  }
}

/** What became of a request. */
type RequestOutcome = Outcome & Pick<RecordedRequest, 'refusal'>

/** How many requests of each kind arrived since the start. */
export type RequestCounts = Readonly<Record<RecordedRequest['operation'], number>>

export class RequestLog {
  readonly #history: History<Omit<RecordedRequest, keyof RecordedEntry>>
  readonly #counts = { token: 0, create: 0, update: 0, unsubscribe: 0, unknown: 0 }

  /** `tell` is called when a request arrives, and when it was answered or broken. */
  constructor(tell: (entry: RecordedRequest) => void) {
    this.#history = new History<Omit<RecordedRequest, keyof RecordedEntry>>(tell)
  }

  /** Records a request, whose body is cut; the returned function adds what became of the request. */
  begin(
    request: Omit<RecordedRequest, keyof RecordedEntry | 'bodyLength' | 'refusal'>,
  ): (outcome: RequestOutcome) => void {
    this.#counts[request.operation]++
    return this.#history.begin({ ...request, ...beginningOf(request.body) })
  }

  /** The last 1,000 requests, the newest last. */
  get requests(): readonly RecordedRequest[] {
    return this.#history.list()
  }

  get counts(): RequestCounts {
    return { ...this.#counts }
  }
}
