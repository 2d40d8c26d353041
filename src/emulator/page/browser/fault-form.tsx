/** Plans faults: the next answers of an endpoint, or the next callbacks, go wrong. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { type FeedState, post, problemOf } from './connection.js'
import { ActionButton, Field, Icon, Problem } from './controls.js'
import { count } from './format.js'

type Kind = 'status' | 'before' | 'after' | 'delay' | 'malformed'

const operations = [
  { value: 'callback', label: 'Callbacks' },
  { value: 'create', label: 'Create requests' },
  { value: 'update', label: 'Update requests' },
  { value: 'unsubscribe', label: 'Unsubscribe requests' },
  { value: 'token', label: 'Token requests' },
] as const

type Operation = (typeof operations)[number]['value']

const kinds: readonly { readonly value: Kind; readonly label: string }[] = [
  { value: 'status', label: 'are answered with a status' },
  { value: 'before', label: 'lose the connection before they take effect' },
  { value: 'after', label: 'take effect and lose the answer' },
  { value: 'delay', label: 'are answered late' },
  { value: 'malformed', label: 'are answered with half a body' },
]

export function FaultForm({ state }: { state: FeedState }): JSX.Element {
  const [operation, setOperation] = useState<Operation>('callback')
  const [kind, setKind] = useState<Kind>('status')
  const [status, setStatus] = useState('503')
  const [delayMs, setDelayMs] = useState('2000')
  const [times, setTimes] = useState('1')
  const [subscriptionId, setSubscriptionId] = useState('')
  const [problem, setProblem] = useState<string>()
  // A callback's body and an answer 204 cannot be cut in half.
  const possible = kinds.filter(
    ({ value }) => value !== 'malformed' || !['callback', 'unsubscribe'].includes(operation),
  )

  async function plan(event: Event): Promise<void> {
    event.preventDefault()
    const fault = {
      status: { status: Number(status) },
      before: { reset: 'before-processing' },
      after: { reset: 'after-processing' },
      delay: { delayMs: Number(delayMs) },
      malformed: { malformedBody: true },
    }[kind]
    const ofOne = operation === 'callback' &&
      subscriptionId !== '' && { subscriptionId: Number(subscriptionId) }
    try {
      await post('fault', { operation, fault, times: Number(times), ...ofOne })
      setProblem(undefined)
    } catch (error) {
      setProblem(problemOf(error))
    }
  }

  return (
    <form class="form" onSubmit={plan} aria-label="Plan a fault">
      <div class="field-row">
        <Field htmlFor="fault-times" label="The next">
          <NumberInput id="fault-times" min={1} value={times} onInput={setTimes} />
        </Field>
        <Field htmlFor="fault-operation" label="What">
          <select
            id="fault-operation"
            value={operation}
            onChange={({ currentTarget }) => {
              const picked = operations.find(({ value }) => value === currentTarget.value)?.value ?? operation
              setOperation(picked)
              if (kind === 'malformed' && ['callback', 'unsubscribe'].includes(picked)) setKind('status')
            }}
          >
            {operations.map(({ value, label }) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </Field>
      </div>
      <Field htmlFor="fault-kind" label="What happens">
        <select
          id="fault-kind"
          value={kind}
          onChange={({ currentTarget }) => {
            setKind(kinds.find(({ value }) => value === currentTarget.value)?.value ?? kind)
          }}
        >
          {possible.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </Field>
      <div class="field-row">
        {kind === 'status' && (
          <Field htmlFor="fault-status" label="Status">
            <NumberInput
              id="fault-status"
              min={operation === 'callback' ? 300 : 200}
              max={599}
              value={status}
              onInput={setStatus}
            />
          </Field>
        )}
        {kind === 'delay' && (
          <Field htmlFor="fault-delay" label="Milliseconds">
            <NumberInput id="fault-delay" min={0} value={delayMs} onInput={setDelayMs} />
          </Field>
        )}
        {operation === 'callback' && (
          <Field htmlFor="fault-subscription" label="Subscription">
            <NumberInput
              id="fault-subscription"
              min={1}
              isOptional
              placeholder="any"
              value={subscriptionId}
              onInput={setSubscriptionId}
            />
          </Field>
        )}
      </div>
      <div class="buttons">
        <button type="submit" class="button primary">
          <Icon name="bolt" />
          Plan it
        </button>
      </div>
      <Problem text={problem} />
      <h3>Planned</h3>
      <PlannedFaults state={state} />
    </form>
  )
}

function PlannedFaults({ state: { faults } }: { state: FeedState }): JSX.Element {
  if (faults.length === 0) {
    return <p class="muted">None. Plan three failing callbacks of one subscription to see it end.</p>
  }
  return (
    <>
      <ul class="planned">
        {faults.map(({ operation, fault, remaining, subscriptionId }, index) => (
          <li key={index}>
            <Icon name="bolt" />
            <span>
              <strong>{operation}</strong>
              {subscriptionId !== undefined && ` of #${subscriptionId}`}: {fault}
            </span>
            <span class="badge">{count(remaining, 'time')}</span>
          </li>
        ))}
      </ul>
      <div class="buttons">
        <ActionButton action="clear-faults" body={{}} done="Cleared">
          Forget all of them
        </ActionButton>
      </div>
    </>
  )
}

function NumberInput(props: {
  id: string
  value: string
  min: number
  max?: number
  isOptional?: boolean
  placeholder?: string
  onInput: (value: string) => void
}): JSX.Element {
  const { id, value, min, max, isOptional, placeholder, onInput } = props
  return (
    <input
      id={id}
      type="number"
      inputMode="numeric"
      min={min}
      max={max}
      required={isOptional !== true}
      placeholder={placeholder}
      value={value}
      onInput={({ currentTarget }) => onInput(currentTarget.value)}
    />
  )
}
