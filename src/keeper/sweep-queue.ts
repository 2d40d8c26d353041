/** Passes wait for each other. A sweep that has not begun yet serves everybody who asks for the same. */
import type { Log } from '../logger.js'
import { callSafely } from '../shared/call-safely.js'
import type { SweepProgress, SweepReport } from './keeper-types.js'
import type { PassRequest } from './pass.js'

/** A pass as it is asked for; what is missing has the value of an ordinary `sweep()`. */
export interface SweepRequest extends Partial<Omit<PassRequest, 'onProgress'>> {
  readonly onProgress?: ((progress: SweepProgress) => unknown) | undefined
  /** Who asks for a pass under the same name shares it; without a name it is the caller's alone. */
  readonly sharedAs?: 'sweep' | 'sweep with removals'
}

interface Queued {
  readonly sharedAs: SweepRequest['sharedAs']
  readonly listeners: ((progress: SweepProgress) => unknown)[]
  readonly report: Promise<SweepReport>
}

export class SweepQueue {
  readonly #run: (request: PassRequest) => Promise<SweepReport>
  readonly #log: Log
  readonly #waiting: Queued[] = []
  #last: Promise<unknown> = Promise.resolve()

  constructor(run: (request: PassRequest) => Promise<SweepReport>, log: Log) {
    this.#run = run
    this.#log = log
  }

  /** The passes that were asked for so far. */
  get inFlight(): Promise<unknown> {
    return this.#last
  }

  add(request: SweepRequest): Promise<SweepReport> {
    const { onProgress, sharedAs } = request
    const shared = sharedAs && this.#waiting.find((each) => each.sharedAs === sharedAs)
    const queued = shared ?? this.#enqueue(request)
    if (onProgress !== undefined) queued.listeners.push(onProgress)
    return queued.report
  }

  #enqueue(request: SweepRequest): Queued {
    const listeners: Queued['listeners'] = []
    const report = this.#last.then(() => {
      this.#waiting.splice(this.#waiting.indexOf(queued), 1)
      return this.#run({
        wanted: request.wanted ?? 'roster',
        allowRemovals: request.allowRemovals ?? false,
        provenSince: request.provenSince ?? performance.now(),
        isOver: request.isOver ?? (() => false),
        onProgress: (progress) => {
          for (const listener of listeners) {
            callSafely(
              () => listener(progress),
              (err) => this.#log('error', { err }, 'onProgress failed'),
            )
          }
        },
      })
    })
    const queued: Queued = { sharedAs: request.sharedAs, listeners, report }
    this.#waiting.push(queued)
    this.#last = report.catch(() => {})
    return queued
  }
}
