/** Plans faults: the next answers of an endpoint, or the next callbacks, go wrong. */
import type { JSX, TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { ActionButton, Button, Choice, Input, Problem } from './controls.js'
import { ask, post, problemOf, state } from './store.js'

const operations = {
  callback: 'Callbacks',
  create: 'Create requests',
  update: 'Update requests',
  unsubscribe: 'Unsubscribe requests',
  token: 'Token requests',
}

/** The fields that set a part of a fault, by its name. */
const fields = {
  status: { label: 'Status', min: 200, max: 599, defaultValue: '503' },
  delayMs: { label: 'Milliseconds late', min: 0, defaultValue: '2000' },
} as const

/** How a kind is named, and its fault without what a field sets. */
const kinds: Readonly<Record<string, readonly [name: string, fault: object, field?: keyof typeof fields]>> = {
  status: ['get a status', {}, 'status'],
  before: ['lose the connection before they take effect', { reset: 'before-processing' }],
  after: ['take effect and lose the answer', { reset: 'after-processing' }],
  delay: ['get the answer late', {}, 'delayMs'],
  malformed: ['get half a body', { malformedBody: true }],
}

const times = {
  1: 'once',
  2: '2 times',
  3: '3 times: ends a subscription',
  10: '10 times',
  forever: 'until I lift it',
}

export function FaultForm(): JSX.Element {
  const [operation, setOperation] = useState('callback')
  const [picked, setPicked] = useState('status')
  const [problem, setProblem] = useState<string>()
  // A callback's body and an answer 204 cannot be cut in half.
  const { malformed, ...whole } = kinds
  const possible = ['callback', 'unsubscribe'].includes(operation) ? whole : kinds
  const kind = picked in possible ? picked : 'status'
  const [, fault, part] = possible[kind] ?? []

  async function plan(event: TargetedSubmitEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault()
    const values = new FormData(event.currentTarget)
    const number = (name: string) => Number(values.get(`fault-${name}`))
    const planned = {
      operation,
      fault: { ...fault, ...(part && { [part]: number(part) }) },
      times: values.get('fault-times') === 'forever' ? null : number('times'),
      subscriptionId: number('subscription') || undefined,
    }
    setProblem(await post('fault', planned).then(() => undefined, problemOf))
  }

  return (
    <form class="form" onSubmit={plan} aria-label="Plan a fault">
      <h2>Plan a fault</h2>
      <Choice
        id="fault-operation"
        label="What fails"
        value={operation}
        options={operations}
        onPick={setOperation}
      />
      {operation === 'callback' && (
        <Input id="fault-subscription" label="Of subscription" type="number" min={1} placeholder="any" />
      )}
      <Choice
        id="fault-kind"
        label="How they fail"
        value={kind}
        options={Object.fromEntries(Object.entries(possible).map(([each, [name]]) => [each, name]))}
        onPick={setPicked}
      />
      {part !== undefined && (
        <Input key={part} id={`fault-${part}`} type="number" required {...fields[part]} />
      )}
      <Choice id="fault-times" label="How often" options={times} />
      <div class="buttons">
        <Button type="submit" icon="bolt" kind="primary">
          Plan it
        </Button>
      </div>
      <Problem text={problem} />
      <h3>Planned</h3>
      {state.faults.length === 0 && (
        <p class="muted">None. Plan three failing callbacks of one subscription to see it end.</p>
      )}
      <ul class="planned">
        {state.faults.map(({ id, sentence }) => (
          <li key={id}>
            {sentence}
            <ActionButton kind="small" act={() => ask('lift-fault', { id }, 'Lifted')}>
              Lift
            </ActionButton>
          </li>
        ))}
      </ul>
      {state.faults.length > 1 && (
        <div class="buttons">
          <ActionButton act={() => ask('clear-faults', {}, 'Lifted')}>Lift all</ActionButton>
        </div>
      )}
    </form>
  )
}
