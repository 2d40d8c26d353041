/** A list of which only what is in sight is in the document: a listbox with one tab stop and arrow keys. */
import type { JSX, TargetedKeyboardEvent } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

export interface VirtualListProps<Item> {
  readonly id: string
  readonly label: string
  readonly items: readonly Item[]
  readonly rowHeight: number
  readonly keyOf: (item: Item) => number
  readonly selectedKey: number | undefined
  /** Called when the cursor moves to an item. */
  readonly onMove: (item: Item) => void
  /** A click or Enter. */
  readonly onOpen: (item: Item, by: 'pointer' | 'keyboard') => void
  readonly renderRow: (item: Item) => JSX.Element
  readonly classOf: (item: Item) => string
  /** Shown below the last row. */
  readonly footer?: JSX.Element | undefined
  /** A list with another reset key is another list: it begins at its top. */
  readonly resetKey: string
}

/** Rows rendered above and below what is in sight, so that scrolling shows no gap. */
const spareRows = 6

export function VirtualList<Item>(props: VirtualListProps<Item>): JSX.Element {
  const { id, items, rowHeight, keyOf, selectedKey } = props
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 600 })
  useStableScroll(box, props)

  useLayoutEffect(() => {
    const element = box.current
    if (element === null) return
    const observer = new ResizeObserver(() =>
      setView({ top: element.scrollTop, height: element.clientHeight }),
    )
    observer.observe(element)
    return () => observer.disconnect()
  }, [])

  const first = Math.max(0, Math.floor(view.top / rowHeight) - spareRows)
  const end = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + spareRows)
  const cursor = selectedKey === undefined ? -1 : items.findIndex((item) => keyOf(item) === selectedKey)
  const isCursorRendered = cursor >= first && cursor < end

  function moveTo(index: number): void {
    const target = Math.min(Math.max(index, 0), items.length - 1)
    const item = items[target]
    const element = box.current
    if (item === undefined || element === null) return
    props.onMove(item)
    const top = target * rowHeight
    if (top < element.scrollTop) element.scrollTop = top
    const bottom = top + rowHeight - element.clientHeight
    if (bottom > element.scrollTop) element.scrollTop = bottom
  }

  function onKeyDown(event: TargetedKeyboardEvent<HTMLDivElement>): void {
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 1)
    const targets: Readonly<Record<string, number>> = {
      ArrowDown: cursor + 1,
      ArrowUp: cursor === -1 ? 0 : cursor - 1,
      PageDown: cursor + page,
      PageUp: cursor - page,
      Home: 0,
      End: items.length - 1,
    }
    const target = targets[event.key]
    const item = items[cursor]
    if (target !== undefined) moveTo(target)
    else if ((event.key === 'Enter' || event.key === ' ') && item !== undefined)
      props.onOpen(item, 'keyboard')
    else return
    event.preventDefault()
  }

  return (
    <div
      ref={box}
      id={id}
      class="list"
      role="listbox"
      tabIndex={0}
      aria-label={props.label}
      aria-activedescendant={isCursorRendered ? `${id}-${selectedKey}` : undefined}
      onKeyDown={onKeyDown}
      onScroll={({ currentTarget }) =>
        setView({ top: currentTarget.scrollTop, height: currentTarget.clientHeight })
      }
    >
      <div class="list-space" role="presentation" style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(first, end).map((item, offset) => {
          const key = keyOf(item)
          const index = first + offset
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the listbox around it has the focus and the keys
            <div
              key={key}
              id={`${id}-${key}`}
              role="option"
              tabIndex={-1}
              class={`row ${props.classOf(item)}`}
              aria-selected={key === selectedKey}
              aria-setsize={items.length}
              aria-posinset={index + 1}
              style={{ height: `${rowHeight}px`, transform: `translateY(${index * rowHeight}px)` }}
              onClick={() => props.onOpen(item, 'pointer')}
            >
              {props.renderRow(item)}
            </div>
          )
        })}
      </div>
      {props.footer}
    </div>
  )
}

/** Keeps the rows in sight where they are while new ones arrive at the top, for a reader who has scrolled down. */
function useStableScroll<Item>(
  box: { readonly current: HTMLDivElement | null },
  { items, keyOf, rowHeight, resetKey }: VirtualListProps<Item>,
): void {
  const before = useRef<{ resetKey: string; topKey: number | undefined }>(undefined)
  useLayoutEffect(() => {
    const element = box.current
    const [topItem] = items
    const was = before.current
    before.current = { resetKey, topKey: topItem === undefined ? undefined : keyOf(topItem) }
    if (element === null || was === undefined) return
    if (was.resetKey !== resetKey) {
      element.scrollTop = 0
    } else if (element.scrollTop > 0 && was.topKey !== undefined && was.topKey !== before.current.topKey) {
      const added = items.findIndex((item) => keyOf(item) === was.topKey)
      if (added > 0) element.scrollTop += added * rowHeight
    }
  }, [items, resetKey])
}
