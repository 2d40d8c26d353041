/** Tabs after the ARIA pattern: one tab stop, arrows between them. A hidden panel keeps what was typed into it. */
import type { JSX, TargetedKeyboardEvent } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { Icon } from './controls.js'

export interface Tab<View extends string> {
  readonly view: View
  readonly label: string
  /** A number beside the label, left out while it is 0. */
  readonly badge?: number
  readonly content: JSX.Element
}

export interface TabsProps<View extends string> {
  readonly tabs: readonly Tab<View>[]
  /** The view whose tab is open. A view without a tab of its own opens the first tab. */
  readonly view: View
  readonly onView: (view: View) => void
}

export function Tabs<View extends string>({ tabs, view, onView }: TabsProps<View>): JSX.Element {
  const index = Math.max(
    0,
    tabs.findIndex((tab) => tab.view === view),
  )

  const list = useRef<HTMLDivElement>(null)
  const hidden = useHiddenSides(list, tabs)

  // In a narrow window not all tabs are in sight, and the open one may be hidden.
  useLayoutEffect(() => {
    document
      .getElementById(`tab-${tabs[index]?.view}`)
      ?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [index])

  function onKeyDown(event: TargetedKeyboardEvent<HTMLDivElement>): void {
    const targets: Readonly<Record<string, number>> = {
      ArrowRight: index + 1,
      ArrowLeft: index - 1 + tabs.length,
      Home: 0,
      End: tabs.length - 1,
    }
    const target = targets[event.key]
    const tab = target === undefined ? undefined : tabs[target % tabs.length]
    if (tab === undefined) return
    event.preventDefault()
    onView(tab.view)
    document.getElementById(`tab-${tab.view}`)?.focus()
  }

  return (
    <div class="pane tabs">
      <div class={`tab-bar${hidden.left ? ' more-left' : ''}${hidden.right ? ' more-right' : ''}`}>
        <div ref={list} class="tab-list" role="tablist" aria-label="What to look at" onKeyDown={onKeyDown}>
          {tabs.map((tab, position) => (
            <button
              key={tab.view}
              id={`tab-${tab.view}`}
              type="button"
              role="tab"
              class="tab"
              aria-selected={position === index}
              aria-controls={`panel-${tab.view}`}
              tabIndex={position === index ? 0 : -1}
              onClick={() => onView(tab.view)}
            >
              {tab.label}
              {tab.badge !== undefined && tab.badge > 0 && (
                <span class="badge">{tab.badge.toLocaleString('en')}</span>
              )}
            </button>
          ))}
        </div>
        {hidden.right && (
          <span class="more-tabs" aria-hidden="true">
            <Icon name="more" />
          </span>
        )}
      </div>
      {tabs.map((tab, position) => (
        <div
          key={tab.view}
          id={`panel-${tab.view}`}
          class="panel"
          role="tabpanel"
          aria-labelledby={`tab-${tab.view}`}
          hidden={position !== index}
        >
          {tab.content}
        </div>
      ))}
    </div>
  )
}

/** On which sides of a list that scrolls there is more than is in sight. */
function useHiddenSides(
  list: { readonly current: HTMLDivElement | null },
  tabs: readonly { readonly label: string; readonly badge?: number }[],
): { left: boolean; right: boolean } {
  const [hidden, setHidden] = useState({ left: false, right: false })
  const widths = tabs.map(({ label, badge }) => `${label} ${badge}`).join()
  useLayoutEffect(() => {
    const element = list.current
    if (element === null) return
    const update = () => {
      const { scrollLeft, scrollWidth, clientWidth } = element
      // Less than a padding hides nothing.
      setHidden({ left: scrollLeft > 8, right: scrollLeft + clientWidth < scrollWidth - 8 })
    }
    update()
    const observer = new ResizeObserver(update)
    observer.observe(element)
    element.addEventListener('scroll', update)
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', update)
    }
  }, [widths])
  return hidden
}
