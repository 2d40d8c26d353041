/** Remembers which callbacks went out and how they were answered. */
import { beginningOf, History, type Outcome, type Recorded } from '../activity/history.js'
import type { CallbackFault } from '../service/faults.js'

/**
 * A callback whose turn had come. Nothing in it is blanked out: the associated values stand there as they were sent.
 * Its `error` is missing if it succeeded: everything but an answer with 2xx, complete in time, is a failure.
 */
export interface RecordedCallback extends Recorded {
  /** The subscription that it was for. */
  readonly subscriptionId: number
  /** Where it went. */
  readonly callbackUrl: string
  /** As sent, the associated parameters among them. */
  readonly headers: Readonly<Record<string, string>>
  /** As text, the first 16,384 characters. */
  readonly body: string
  /** Characters of the whole body. */
  readonly bodyLength: number
  /** The injected fault that the callback met. */
  readonly fault?: CallbackFault
}

export class CallbackLog {
  readonly #history: History<Omit<RecordedCallback, keyof Recorded>>

  /** `tell` is called when a callback is sent, and when it was answered or has failed. */
  constructor(tell: (entry: RecordedCallback) => void) {
    this.#history = new History<Omit<RecordedCallback, keyof Recorded>>(tell)
  }

  /** Records a callback, whose body is cut; the function that it returns adds what became of it. */
  begin(callback: Omit<RecordedCallback, keyof Recorded | 'bodyLength'>): (outcome: Outcome) => void {
    return this.#history.begin({ ...callback, ...beginningOf(callback.body) })
  }

  /** The last 1,000 callbacks, the newest last. */
  get callbacks(): readonly RecordedCallback[] {
    return this.#history.list()
  }
}
