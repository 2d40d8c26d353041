/** Remembers what arrived, for tests that ask what a client really sent. */
import type { EmulatorOperation } from './faults.js'

/** A request that arrived. Nothing in it is blanked out: credentials and tokens stand there as they were sent. */
export interface RecordedRequest {
  /** `unknown` for a path or method that the service does not have. */
  readonly operation: EmulatorOperation | 'unknown'
  /** The HTTP method. */
  readonly method: string
  /** Path and query, as sent. */
  readonly path: string
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** As text; of a body over the size limit only the beginning. */
  readonly body: string
  /** Status of the answer; missing as long as there is none, and for good if the connection was reset. */
  readonly status?: number
}

/** How many requests of each kind arrived since the start. */
export type RequestCounts = Readonly<Record<RecordedRequest['operation'], number>>

const remembered = 1_000

export class RequestLog {
  readonly #requests: RecordedRequest[] = []
  readonly #counts = { token: 0, create: 0, update: 0, unsubscribe: 0, unknown: 0 }

  /** Records a request; the function it returns adds the status of the answer. */
  add(request: RecordedRequest): (status: number) => void {
    const entry: { -readonly [Key in keyof RecordedRequest]: RecordedRequest[Key] } = { ...request }
    this.#counts[entry.operation]++
    this.#requests.push(entry)
    if (this.#requests.length > remembered) this.#requests.shift()
    return (status) => {
      entry.status = status
    }
  }

  /** The last 1,000 requests, the newest last. */
  get requests(): readonly RecordedRequest[] {
    return this.#requests.map((entry) => ({ ...entry }))
  }

  get counts(): RequestCounts {
    return { ...this.#counts }
  }
}
