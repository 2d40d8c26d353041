/** One step of a check and its result. */

export interface CheckStep extends StepResult {
  readonly name: string
}

export interface StepResult {
  /** `skipped`: an earlier step failed, or the step does not apply. `unknown`: this check cannot prove it. */
  readonly outcome: 'passed' | 'failed' | 'skipped' | 'unknown'
  /** What happened; never the body of an answer, nor a secret. */
  readonly message: string
  readonly next?: string | undefined
  /** The values of the message, for programs. */
  readonly details?: object | undefined
}

export function passed(message: string, details?: object): StepResult {
  return { outcome: 'passed', message, details }
}

export function failed(message: string, next?: string, details?: object): StepResult {
  return { outcome: 'failed', message, next, details }
}

export function skipped(message: string): StepResult {
  return { outcome: 'skipped', message }
}

export function unknown(message: string, next?: string): StepResult {
  return { outcome: 'unknown', message: `cannot be proven here: ${message}`, next }
}
