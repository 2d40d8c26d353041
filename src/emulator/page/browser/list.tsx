/** A list of links: one tab stop, arrows between them. The browser skips what is out of sight and keeps the place. */
import { Component, type JSX, type TargetedKeyboardEvent } from 'preact'
import { goTo, hrefOf, type Place } from './place.js'

export interface RowProps {
  readonly place: Place
  readonly isSelected: boolean
  /** Whether the Tab key stops here: of each list, at one row. */
  readonly isTabStop: boolean
  readonly class: string
  /** What the row shows: it is rendered again only for another item. */
  readonly item: object
  readonly render: () => JSX.Element
}

/** The ID of the link, by which the focus comes back to it. */
export function rowId(place: Place): string {
  return `row-${hrefOf(place).slice(1)}`
}

export class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const compared = ['item', 'isSelected', 'isTabStop', 'class'] as const
    return compared.some((name) => next[name] !== this.props[name])
  }

  override render({ place, isSelected, isTabStop, class: className, render }: RowProps): JSX.Element {
    return (
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
    )
  }
}

export interface ListProps {
  readonly id: string
  readonly label: string
  /** Whether details are open: then they follow the arrows. */
  readonly isFollowed: boolean
  readonly children: JSX.Element[]
  readonly footer: string | undefined
}

export function List({ id, label, isFollowed, children, footer }: ListProps): JSX.Element {
  function onKeyDown(event: TargetedKeyboardEvent<HTMLElement>): void {
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
    if (isFollowed) location.replace(link.hash)
  }

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the links in it have the focus and the keys
    <div id={id} class="list" onKeyDown={onKeyDown}>
      <ol aria-label={label}>{children}</ol>
      {footer !== undefined && <p class="empty">{footer}</p>}
    </div>
  )
}
