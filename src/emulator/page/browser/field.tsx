/** A labelled field of a form. */
import type { ComponentChildren, JSX } from 'preact'

export interface FieldProps {
  /** The `id` of the input inside. */
  readonly htmlFor: string
  readonly label: string
  readonly hint?: string
  readonly children: ComponentChildren
}

export function Field({ htmlFor, label, hint, children }: FieldProps): JSX.Element {
  return (
    <div class="field">
      <label for={htmlFor}>{label}</label>
      {children}
      {hint !== undefined && <p class="hint">{hint}</p>}
    </div>
  )
}
