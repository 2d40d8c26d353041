/** The steps of a check, and what they print. */
import { NotificationError } from '../errors.js'
import { messageIn } from '../shared/words.js'
import type { Terminal } from './terminal.js'
import { inCheck } from './words.js'

/** A step did not pass. `unknown`: this check cannot prove it. `skipped`: it was not tried. */
export class Finding extends Error {
  constructor(
    message: string,
    readonly next?: string,
    readonly outcome: 'failed' | 'unknown' | 'skipped' = 'failed',
  ) {
    super(message)
  }
}

export function skipped(why: string): Finding {
  return new Finding(why, undefined, 'skipped')
}

export class Steps {
  /** Of the steps that were tried. */
  readonly outcomes: string[] = []

  constructor(private readonly terminal: Terminal) {}

  /**
   * Runs a step, and prints what the step resolves with, or the `Finding` or the error of a call that it throws.
   * Resolves with whether it did not fail.
   */
  async run(name: string, step: () => Promise<string>): Promise<boolean> {
    try {
      this.#print('passed', name, await step())
      return true
    } catch (error) {
      if (error instanceof Finding) {
        this.#print(error.outcome, name, error.message, error.next)
        return error.outcome !== 'failed'
      }
      if (!(error instanceof NotificationError)) throw error
      this.#print('failed', name, messageIn(inCheck, error))
      return false
    }
  }

  #print(outcome: keyof typeof marks, name: string, message: string, next?: string): void {
    if (outcome !== 'skipped') this.outcomes.push(outcome)
    const [colour, mark] = marks[outcome]
    const title = `${this.terminal.paint(colour, mark)} ${this.terminal.paint('bold', name)}`
    const lines = [`${title}: ${message}`, ...(next === undefined ? [] : [`  → ${next}`])]
    this.terminal.event('step', { name, outcome, message, next }, ...lines)
  }
}

const marks = {
  passed: ['green', '✔'],
  failed: ['red', '✘'],
  skipped: ['dim', '-'],
  unknown: ['yellow', '?'],
} as const
