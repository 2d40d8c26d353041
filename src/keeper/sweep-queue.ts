/** Passes wait for each other. One that has not begun yet serves everybody who asks for the same. */

import { callSafely } from '../shared/call-safely.js'
import type { SweepProgress, SweepReport } from './keeper-types.js'
import type { PassRequest } from './keeping.js'

/** A pass as it is asked for; what is missing has the value of an ordinary `sweep()`. */
export interface SweepRequest {
  readonly wanted?: PassRequest['wanted']
  readonly allowRemovals?: boolean
  /** A proof that was sent since then is enough. Default: since the pass began. */
  readonly provenSince?: number
  readonly onProgress?: ((progress: SweepProgress) => unknown) | undefined
  readonly isOver?: () => boolean
  /** Whether others who ask for the same may share the pass. Default: true for those who leave the rest open. */
  readonly isShared?: boolean
}

interface Queued {
  readonly request: SweepRequest
  readonly listeners: ((progress: SweepProgress) => unknown)[]
  report: Promise<SweepReport>
}

export class SweepQueue {
  readonly #run: (request: PassRequest) => Promise<SweepReport>
  readonly #onFailure: (error: unknown) => void
  readonly #waiting: Queued[] = []
  #last: Promise<unknown> = Promise.resolve()

  /** @param onFailure - gets what a listener of the progress throws */
  constructor(run: (request: PassRequest) => Promise<SweepReport>, onFailure: (error: unknown) => void) {
    this.#run = run
    this.#onFailure = onFailure
  }

  /** The passes that were asked for so far. */
  get underWay(): Promise<unknown> {
    return this.#last
  }

  add(request: SweepRequest): Promise<SweepReport> {
    const { onProgress } = request
    const queued = this.#waiting.find((each) => canShare(each.request, request)) ?? this.#enqueue(request)
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
          for (const listener of listeners)
            callSafely(
              () => listener(progress),
              (error) => this.#onFailure(error),
            )
        },
      })
    })
    const queued: Queued = { request, listeners, report }
    this.#waiting.push(queued)
    this.#last = report.catch(() => {})
    return queued
  }
}

/** Equal options, and nothing that only one of them wants. */
function canShare(one: SweepRequest, other: SweepRequest): boolean {
  return isPlain(one) && isPlain(other) && (one.allowRemovals ?? false) === (other.allowRemovals ?? false)
}

function isPlain({ isShared = true, isOver, provenSince, wanted }: SweepRequest): boolean {
  return isShared && isOver === undefined && provenSince === undefined && wanted === undefined
}
