/** The controls that every part of the page uses: icons, buttons and fields. */
import type { ComponentChildren, ComponentProps, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { problemOf } from './store.js'

const iconPaths = {
  in: 'M12 4 4 12M4 5.5V12h6.5',
  out: 'M4 12 12 4M5.5 4H12v6.5',
  ended: 'M3.8 3.8l8.4 8.4M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8Z',
  key: 'M9.5 6.5 3 13v.5h2.2v-1.6h1.6v-1.6l2-2M10.5 8.5a3 3 0 1 0-3-3 3 3 0 0 0 3 3Z',
  bolt: 'M8.8 1.5 3.2 9h4l-.8 5.5L12.8 7h-4z',
  copy: 'M5.5 5.5V3a1 1 0 0 1 1-1H13a1 1 0 0 1 1 1v6.5a1 1 0 0 1-1 1h-2.5M3 5.5h6.5a1 1 0 0 1 1 1V13a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1V6.5a1 1 0 0 1 1-1Z',
  plug: 'M6 1.5v3M10 1.5v3M4 4.5h8V8a4 4 0 0 1-8 0zM8 12v2.5',
  send: 'M14 2 7 9M14 2 9.5 14 7 9 2 6.5z',
  pause: 'M5.5 3v10M10.5 3v10',
  resume: 'M4.5 2.8 12.5 8l-8 5.2z',
  clear: 'M3 4h10M6 4V2.5h4V4M4.5 4l.6 9.5h5.8l.6-9.5',
  close: 'm4 4 8 8M12 4l-8 8',
  eye: 'M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z',
  again: 'M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3',
  logo: 'M1.5 9.5h2.5l2-6.5 3.5 10 2-5.5h3',
} as const

type IconName = keyof typeof iconPaths

/** Drawn in the colour of the text. No icon has a meaning that is not also in a word. */
export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={iconPaths[name]} />
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
  icon?: IconName | undefined
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
