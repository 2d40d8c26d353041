/** Plans faults: the next answers of an endpoint, or the next callbacks, go wrong. */
import type { JSX, TargetedSubmitEvent } from 'preact'
import { useState } from 'preact/hooks'
import { type PageState, post, problemOf } from './connection.js'
import { ActionButton, Choice, CloseButton, Field, Icon, Problem } from './controls.js'

const operations = {
  callback: 'Callbacks',
  create: 'Create requests',
  update: 'Update requests',
  unsubscribe: 'Unsubscribe requests',
  token: 'Token requests',
}

const kinds = {
  status: 'get a status',
  before: 'lose the connection before they take effect',
  after: 'take effect and lose the answer',
  delay: 'get the answer late',
  malformed: 'get half a body',
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
  const { malformed, ...others } = kinds
  // A callback's body and an answer 204 cannot be cut in half.
  const possible = ['callback', 'unsubscribe'].includes(operation) ? others : { ...others, malformed }
  const kind = picked in possible ? picked : 'status'

  async function plan(event: TargetedSubmitEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault()
    const fields = new FormData(event.currentTarget)
    const number = (name: string) => Number(fields.get(name))
    const faults: Readonly<Record<string, object>> = {
      status: { status: number('fault-status') },
      before: { reset: 'before-processing' },
      after: { reset: 'after-processing' },
      delay: { delayMs: number('fault-delay') },
      malformed: { malformedBody: true },
    }
    const times = fields.get('fault-times') === 'forever' ? null : number('fault-times')
    const subscriptionId = number('fault-subscription') || undefined
    try {
      await post('fault', { operation, fault: faults[kind], times, subscriptionId })
      setProblem(undefined)
    } catch (error) {
      setProblem(problemOf(error))
    }
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
        <NumberField id="fault-subscription" label="Of subscription" min={1} placeholder="any" />
      )}
      <Choice id="fault-kind" label="How they fail" value={kind} options={possible} onPick={setKind} />
      {kind === 'status' && (
        <NumberField id="fault-status" label="Status" min={200} max={599} defaultValue="503" />
      )}
      {kind === 'delay' && (
        <NumberField id="fault-delay" label="Milliseconds late" min={0} defaultValue="2000" />
      )}
      <Choice id="fault-times" label="How often" options={times} />
      <div class="buttons">
        <button type="submit" class="button primary">
          <Icon name="bolt" />
          Plan it
        </button>
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
            <ActionButton action="lift-fault" body={{ id }} done="Lifted" kind="small">
              Lift
            </ActionButton>
          </li>
        ))}
      </ul>
      {state.faults.length > 1 && (
        <div class="buttons">
          <ActionButton action="clear-faults" body={{}} done="Lifted">
            Lift all
          </ActionButton>
        </div>
      )}
    </form>
  )
}

function NumberField(props: {
  id: string
  label: string
  min: number
  max?: number
  defaultValue?: string
  /** Says what an empty field means. */
  placeholder?: string
}): JSX.Element {
  const { label, ...input } = props
  return (
    <Field htmlFor={input.id} label={label}>
      <input type="number" name={input.id} required={input.placeholder === undefined} {...input} />
    </Field>
  )
}
