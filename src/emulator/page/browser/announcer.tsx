/** Says to a screen reader what arrived, a sentence for many events and not one for each. */
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { FeedState } from './feed-client.js'
import { count, isFailure, reasonInWords } from './format.js'

const pauseMs = 2_000

export function Announcer({ state }: { state: FeedState }): JSX.Element {
  const [text, setText] = useState('')
  const latest = useRef(state)
  latest.current = state
  useEffect(() => {
    let announced: number | undefined
    const timer = setInterval(() => {
      const { entries, service } = latest.current
      if (service === undefined) return
      const newest = entries[0]?.id ?? 0
      if (announced !== undefined && newest > announced) setText(summaryOf(latest.current, announced))
      announced = newest
    }, pauseMs)
    return () => clearInterval(timer)
  }, [])
  return (
    <div class="visually-hidden" role="log">
      {text}
    </div>
  )
}

function summaryOf({ entries }: FeedState, since: number): string {
  const fresh = entries.filter(({ id }) => id > since)
  const failures = fresh.filter(isFailure).length
  const endings = fresh.map((entry) =>
    entry.kind === 'note' && entry.note === 'ended'
      ? ` Subscription ${entry.subscriptionId} ended: ${reasonInWords(entry.reason)}.`
      : '',
  )
  const failed = failures === 0 ? '' : `, ${count(failures, 'failure')}`
  return `${count(fresh.length, 'new entry', 'new entries')}${failed}.${endings.slice(0, 3).join('')}`
}
