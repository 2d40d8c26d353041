/** The controls that every part of the page uses: icons, buttons and fields. */
import type { ComponentChildren, ComponentProps, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { problemOf } from './store.js'

/** Of page.html, drawn in the colour of the text. No icon has a meaning that is not also in a word. */
export function Icon({ name }: { name: string }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <use href={`#icon-${name}`} />
    </svg>
  )
}

/** A button that looks like the others of the page. */
export function Button({
  icon,
  kind = '',
  children,
  ...attributes
}: ComponentProps<'button'> & {
  icon?: string | undefined
  kind?: string | undefined
}): JSX.Element {
  return (
    <button type="button" class={`button ${kind}`} {...attributes}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  )
}

/** A button that does something at once, and shows the outcome in words for a while. */
export function ActionButton({
  act,
  ...button
}: ComponentProps<typeof Button> & {
  /** Resolves with the outcome. Rejects with an `Error` whose message can be shown. */
  act: () => Promise<string>
}): JSX.Element {
  const [outcome, setOutcome] = useState<string>()

  useEffect(() => {
    const timer = setTimeout(() => setOutcome(undefined), 3_000)
    return () => clearTimeout(timer)
  }, [outcome])

  return (
    <span class="action">
      <Button {...button} onClick={async () => setOutcome(await act().catch(problemOf))} />
      <span class="action-outcome" role="status">
        {outcome}
      </span>
    </span>
  )
}

/** `what` names what is copied; `text` can be a function that fetches it. Without children, an icon. */
export function CopyButton(props: {
  what: string
  text: string | (() => Promise<string>)
  children?: ComponentChildren
}): JSX.Element {
  const { what, text, children } = props
  const label = `Copy ${what}`
  async function copy(): Promise<string> {
    await navigator.clipboard.writeText(typeof text === 'string' ? text : await text())
    return 'Copied'
  }
  return (
    <ActionButton
      act={copy}
      icon="copy"
      kind={children === undefined ? 'quiet small' : ''}
      aria-label={label}
      title={label}
    >
      {children}
    </ActionButton>
  )
}

/** A labelled field of a form. `htmlFor` is the `id` of the input inside. */
export function Field(props: { htmlFor: string; label: string; children: ComponentChildren }): JSX.Element {
  const { htmlFor, label, children } = props
  return (
    <div class="field">
      <label class="muted" for={htmlFor}>
        {label}
      </label>
      {children}
    </div>
  )
}

/** A labelled input; its ID is also the name of its value. */
export function Input({
  label,
  ...input
}: ComponentProps<'input'> & { id: string; label: string }): JSX.Element {
  return (
    <Field htmlFor={input.id} label={label}>
      <input name={input.id} autocomplete="off" {...input} />
    </Field>
  )
}

/** The text of each value, or those of a group by its name. */
export interface Options {
  readonly [value: string]: string | Options
}

/** A field for one of several values. The form keeps the value if there is no `onPick`. */
export function Choice(props: {
  id: string
  label: string
  value?: string | undefined
  options: Options
  onPick?: (value: string) => void
}): JSX.Element {
  const { id, label, value, options, onPick } = props
  return (
    <Field htmlFor={id} label={label}>
      <select id={id} name={id} value={value} onChange={({ currentTarget }) => onPick?.(currentTarget.value)}>
        {elementsOf(options)}
      </select>
    </Field>
  )
}

function elementsOf(options: Options): JSX.Element[] {
  return Object.entries(options).map(([key, text]) =>
    typeof text === 'string' ? (
      <option key={key} value={key}>
        {text}
      </option>
    ) : (
      <optgroup key={key} label={key}>
        {elementsOf(text)}
      </optgroup>
    ),
  )
}

/** An error, which a screen reader reads out at once. */
export function Problem({ text }: { text: string | undefined }): JSX.Element | undefined {
  if (text === undefined) return undefined
  return (
    <p class="bad" role="alert">
      {text}
    </p>
  )
}
