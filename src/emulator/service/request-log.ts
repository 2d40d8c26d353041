/** Remembers what arrived, for tests that ask what a client really sent. */
import { beginningOf, History, type Outcome, type Recorded } from '../activity/history.js'
import type { EmulatorOperation, Fault } from './faults.js'

/** A request that arrived. Nothing in it is blanked out: credentials and tokens stand there as they were sent. */
export interface RecordedRequest extends Recorded {
  /** `unknown` for a path or method that the service does not have. */
  readonly operation: EmulatorOperation | 'unknown'
  /** The HTTP method. */
  readonly method: string
  /** Path and query, as sent. */
  readonly path: string
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** As text, the first 16,384 characters. */
  readonly body: string
  /** Characters of the whole body; of one over the size limit, of the part that was read. */
  readonly bodyLength: number
  /** The injected fault that the request met. */
  readonly fault?: Fault
}

/** How many requests of each kind arrived since the start. */
export type RequestCounts = Readonly<Record<RecordedRequest['operation'], number>>

export class RequestLog {
  readonly #history: History<Omit<RecordedRequest, keyof Recorded>>
  readonly #counts = { token: 0, create: 0, update: 0, unsubscribe: 0, unknown: 0 }

  /** `tell` is called when a request arrives, and when it was answered or broken. */
  constructor(tell: (entry: RecordedRequest) => void) {
    this.#history = new History<Omit<RecordedRequest, keyof Recorded>>(tell)
  }

  /** Records a request, whose body is cut; the function that it returns adds what became of it. */
  begin(request: Omit<RecordedRequest, keyof Recorded | 'bodyLength'>): (outcome: Outcome) => void {
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
