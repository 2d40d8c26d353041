/** The marks that lists and details share: the outcome of a message, its fault, and failures in a row. */
import type { JSX } from 'preact'
import type { CallbackView, RequestView } from '../protocol.js'
import { Icon } from './controls.js'
import { count, duration, isDuplicate, isFailure } from './format.js'

/** Failures in a row that end a subscription (docs/service.md, Delivery). */
const failuresToTheEnd = 3

/** The status, or that there is none yet, or none at all. */
export function Outcome({ entry }: { entry: RequestView | CallbackView }): JSX.Element {
  const { status, error, durationMs } = entry
  return (
    <span class="outcome">
      {durationMs !== undefined && <span class="duration">{duration(durationMs)}</span>}
      <span class={`status ${stateOf(entry)}`}>
        {status ?? (error !== undefined || durationMs !== undefined ? 'no answer' : 'waiting')}
      </span>
    </span>
  )
}

function stateOf(entry: RequestView | CallbackView): string {
  if (entry.durationMs === undefined) return 'pending'
  if (isDuplicate(entry)) return 'neutral'
  return isFailure(entry) ? 'bad' : 'good'
}

/** The planned fault that a message met. */
export function FaultMark({ fault }: { fault: string | undefined }): JSX.Element | undefined {
  if (fault === undefined) return undefined
  return (
    <span class="fault-mark">
      <Icon name="bolt" />
      <span class="ellipsis" title={`A planned fault: ${fault}`}>
        <span class="fault-word">fault: </span>
        {fault}
      </span>
    </span>
  )
}

/** A pip for each failure in a row. */
export function Pips({ failures }: { failures: number }): JSX.Element {
  const words =
    failures === 0
      ? 'no failure in a row'
      : `${count(failures, 'failure')} in a row, ${failuresToTheEnd} end it`
  return (
    <span class={`pips failures-${failures}`} role="img" aria-label={words} title={words}>
      {Array.from({ length: failuresToTheEnd }, (_, index) => (
        <span key={index} class={index < failures ? 'pip failed' : 'pip'} />
      ))}
    </span>
  )
}
