/** A list of links: one tab stop, arrows between them. The browser skips what is out of sight and keeps the place. */
import type { JSX, TargetedKeyboardEvent } from 'preact'
import { useMemo } from 'preact/hooks'
import type { Filter } from './search.js'
import { goTo, hrefOf, type Place } from './store.js'

/** A list with its name, and what narrows it down. */
export function ListPane<Kind extends string>(props: {
  /** With `-list` the ID of the list, with `-filter` that of the field. */
  id: string
  title: string
  kinds: readonly (readonly [kind: Kind, label: string])[]
  filter: Filter<Kind>
  onFilter: (filter: Filter<Kind>) => void
  /** What can be typed into the field. */
  hint: string
  buttons?: JSX.Element
  /** The list's name for a screen reader. */
  label: string
  /** Without one, `empty` takes the list's place. */
  rows: JSX.Element[]
  empty: JSX.Element
  footer: string | undefined
}): JSX.Element {
  const { id, title, kinds, filter, onFilter, hint, buttons, label, rows, empty, footer } = props
  return (
    <>
      <div class="pane-head">
        <h2>{title}</h2>
        {/* Radio buttons that look like one control. */}
        <fieldset class="segmented">
          <legend class="visually-hidden">Which are shown</legend>
          {kinds.map(([kind, name]) => (
            <label key={kind}>
              <input
                type="radio"
                name={id}
                value={kind}
                checked={kind === filter.kind}
                onChange={() => onFilter({ ...filter, kind })}
              />
              {name}
            </label>
          ))}
        </fieldset>
        <input
          id={`${id}-filter`}
          type="search"
          aria-label={hint}
          placeholder={hint}
          autocomplete="off"
          spellcheck={false}
          value={filter.text}
          onInput={({ currentTarget }) => onFilter({ ...filter, text: currentTarget.value })}
        />
        {buttons}
      </div>
      {rows.length === 0 ? (
        empty
      ) : (
        // biome-ignore lint/a11y/noStaticElementInteractions: the links in it have the focus and the keys
        <div key={`${filter.kind} ${filter.text}`} id={`${id}-list`} class="list" onKeyDown={moveFocus}>
          <ol aria-label={label}>{rows}</ol>
          {footer !== undefined && <p class="empty">{footer}</p>}
        </div>
      )}
    </>
  )
}

function moveFocus(event: TargetedKeyboardEvent<HTMLElement>): void {
  const links = [...event.currentTarget.querySelectorAll<HTMLAnchorElement>('a.row')]
  const index = links.findIndex((each) => each.matches(':focus'))
  const targets: Readonly<Record<string, number>> = {
    ArrowDown: index + 1,
    ArrowUp: index - 1,
    PageDown: index + 10,
    PageUp: index - 10,
    Home: 0,
    End: links.length - 1,
  }
  const target = targets[event.key]
  const link = target === undefined ? undefined : links[Math.min(Math.max(target, 0), links.length - 1)]
  if (link === undefined) return
  event.preventDefault()
  link.focus()
  // Open details follow the arrows.
  if (links.some((each) => each.matches('[aria-current]'))) location.replace(link.hash)
}

/** The ID of the link, by which the focus comes back to it. */
export function rowId(place: Place): string {
  return `row-${hrefOf(place).slice(1)}`
}

/** A link in a list. It is rendered again only for another `item`, or another state of its own. */
export function Row(props: {
  place: Place
  /** Whether the Tab key stops here: of each list, at one row. */
  isTabStop: boolean
  class: string
  item: object
  render: () => JSX.Element
}): JSX.Element {
  const { place, isTabStop, class: className, item, render } = props
  const isSelected = location.hash === hrefOf(place)
  return useMemo(
    () => (
      <a
        id={rowId(place)}
        class={`row ${className}`}
        href={hrefOf(place)}
        tabIndex={isTabStop ? 0 : -1}
        aria-current={isSelected ? 'true' : undefined}
        onClick={(event) => {
          // 0 for a click by the keyboard, whose user continues in the details.
          if (event.detail !== 0) return
          event.preventDefault()
          goTo(place, 'details-heading')
        }}
      >
        {render()}
      </a>
    ),
    [item, isSelected, isTabStop, className],
  )
}
