/** A choice of one in a row: radio buttons that look like one control. */
import type { JSX } from 'preact'

export interface SegmentedProps<Value extends string> {
  readonly name: string
  readonly legend: string
  readonly value: Value
  readonly options: readonly { readonly value: Value; readonly label: string }[]
  readonly onChange: (value: Value) => void
}

export function Segmented<Value extends string>(props: SegmentedProps<Value>): JSX.Element {
  return (
    <fieldset class="segmented">
      <legend class="visually-hidden">{props.legend}</legend>
      {props.options.map(({ value, label }) => (
        <label key={value}>
          <input
            type="radio"
            name={props.name}
            value={value}
            checked={value === props.value}
            onChange={() => props.onChange(value)}
          />
          <span>{label}</span>
        </label>
      ))}
    </fieldset>
  )
}
