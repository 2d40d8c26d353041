/** One step of a check and its outcome. */

/**
 * `skipped`: not tried, because an earlier step failed or the step does not apply. `unknown`: this check cannot prove it.
 */
export type CheckOutcome = 'passed' | 'failed' | 'skipped' | 'unknown'

export interface CheckStep {
  readonly name: string
  readonly outcome: CheckOutcome
  /** What happened; never the body of an answer, nor a secret. */
  readonly message: string
  readonly next?: string | undefined
  /** The values of the message, for programs. */
  readonly details?: object | undefined
}

export function passed(name: string, message: string, details?: object): CheckStep {
  return { name, outcome: 'passed', message, details }
}

export function failed(name: string, message: string, next?: string, details?: object): CheckStep {
  return { name, outcome: 'failed', message, next, details }
}

export function skipped(name: string, message: string): CheckStep {
  return { name, outcome: 'skipped', message }
}

export function unknown(name: string, message: string, next?: string): CheckStep {
  return { name, outcome: 'unknown', message: `cannot be proven here: ${message}`, next }
}
