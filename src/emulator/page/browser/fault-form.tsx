/** Plans faults: the next answers of an endpoint, or the next callbacks, go wrong. */
import type { JSX, TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { ask, type PageState, post, problemOf } from './connection.js'
import { ActionButton, Button, Choice, CloseButton, Input, Problem } from './controls.js'

const operations = {
  callback: 'Callbacks',
  create: 'Create requests',
  update: 'Update requests',
  unsubscribe: 'Unsubscribe requests',
  token: 'Token requests',
}

interface Kind {
  readonly name: string
  /** @param number - what the field holds, if there is one */
  readonly fault: (number: number) => object
  readonly field?: { readonly label: string; min: number; max?: number; defaultValue: string }
}

const kinds: Readonly<Record<string, Kind>> = {
  status: {
    name: 'get a status',
    fault: (status) => ({ status }),
    field: { label: 'Status', min: 200, max: 599, defaultValue: '503' },
  },
  before: {
    name: 'lose the connection before they take effect',
    fault: () => ({ reset: 'before-processing' }),
  },
  after: { name: 'take effect and lose the answer', fault: () => ({ reset: 'after-processing' }) },
  delay: {
    name: 'get the answer late',
    fault: (delayMs) => ({ delayMs }),
    field: { label: 'Milliseconds late', min: 0, defaultValue: '2000' },
  },
  malformed: { name: 'get half a body', fault: () => ({ malformedBody: true }) },
}

const times = {
  1: 'once',
  2: '2 times',
  3: '3 times: ends a subscription',
  10: '10 times',
  forever: 'until I lift it',
}

export function FaultForm({ state, onLeave }: { state: PageState; onLeave: () => void }): JSX.Element {
  const [operation, setOperation] = useState('callback')
  const [picked, setKind] = useState('status')
  const [problem, setProblem] = useState<string>()
  // A callback's body and an answer 204 cannot be cut in half.
  const isWhole = ['callback', 'unsubscribe'].includes(operation)
  const possible = Object.entries(kinds).filter(([id]) => !(isWhole && id === 'malformed'))
  const [id, kind] = possible.find(([each]) => each === picked) ?? possible[0] ?? []

  async function plan(event: TargetedSubmitEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault()
    const fields = new FormData(event.currentTarget)
    const number = (name: string) => Number(fields.get(name))
    const planned = {
      operation,
      fault: kind?.fault(number(`fault-${id}`)),
      times: fields.get('fault-times') === 'forever' ? null : number('fault-times'),
      subscriptionId: number('fault-subscription') || undefined,
    }
    setProblem(await post('fault', planned).then(() => undefined, problemOf))
  }

  return (
    <form class="form" onSubmit={plan} aria-label="Plan a fault">
      <CloseButton onClick={onLeave} />
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
        value={id}
        options={Object.fromEntries(possible.map(([each, { name }]) => [each, name]))}
        onPick={setKind}
      />
      {kind?.field !== undefined && (
        <Input key={id} id={`fault-${id}`} type="number" required {...kind.field} />
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
