/** Remembers which callbacks went out and how they were answered. */
import { beginningOf, History, type Outcome, type RecordedEntry } from '../activity/history.js'
import type { CallbackFault } from '../service/faults.js'

/**
 * A callback whose turn had come. Nothing in it is blanked out: the associated values stand there as they were sent.
 * `error` is missing if the callback succeeded: everything but an answer with 2xx, complete in time, is a failure.
 */
export interface RecordedCallback extends RecordedEntry {
  /** The subscription that the callback was for. */
  readonly subscriptionId: number
  /** Where the callback went. */
  readonly callbackUrl: string
  /** The headers as sent, the associated values among them. */
  readonly headers: Readonly<Record<string, string>>
  /** The body as text, its first 16,384 characters. */
  readonly body: string
  /** How many characters the whole body has. */
  readonly bodyLength: number
  /** The injected fault that the callback met. */
  readonly fault?: CallbackFault
}

export class CallbackLog {
  readonly #history: History<Omit<RecordedCallback, keyof RecordedEntry>>

  /** `tell` is called when a callback is sent, and when it was answered or has failed. */
  constructor(tell: (entry: RecordedCallback) => void) {
    this.#history = new History<Omit<RecordedCallback, keyof RecordedEntry>>(tell)
  }

  /** Records a callback, whose body is cut; the returned function adds what became of the callback. */
  begin(callback: Omit<RecordedCallback, keyof RecordedEntry | 'bodyLength'>): (outcome: Outcome) => void {
    return this.#history.begin({ ...callback, ...beginningOf(callback.body) })
  }

  /** The last 1,000 callbacks, the newest last. */
  get callbacks(): readonly RecordedCallback[] {
    return this.#history.list()
  }
}
