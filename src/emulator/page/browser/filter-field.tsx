/** A field that narrows a list down. */
import type { JSX } from 'preact'
import { Icon } from './icon.js'

export interface FilterFieldProps {
  readonly id: string
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
}

export function FilterField({ id, label, value, onChange }: FilterFieldProps): JSX.Element {
  return (
    <span class="filter-field">
      <Icon name="search" />
      <input
        id={id}
        type="search"
        aria-label={label}
        placeholder={label}
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </span>
  )
}
