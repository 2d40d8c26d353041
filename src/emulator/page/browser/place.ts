/** Where the page is: in its address, so that a reload, a link and the buttons of the browser lead there. */
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'

const lists = ['time-line', 'subscriptions', 'send', 'faults'] as const

export type Place =
  | { readonly view: (typeof lists)[number] }
  | { readonly view: 'entry' | 'subscription'; readonly id: number }

export function hrefOf(place: Place): string {
  return 'id' in place ? `#${place.view}-${place.id}` : `#${place.view}`
}

/** Where the page is. Used once, by the component that renders all: then the element to focus exists. */
export function usePlace(): Place {
  const [place, setPlace] = useState(placeNow)
  useEffect(() => {
    const update = () => setPlace(placeNow())
    addEventListener('hashchange', update)
    return () => removeEventListener('hashchange', update)
  }, [])
  useLayoutEffect(() => {
    if (focusedNext !== undefined) document.getElementById(focusedNext)?.focus()
    focusedNext = undefined
  }, [place])
  return place
}

let focusedNext: string | undefined

/** Goes there, and moves the focus to the element with this ID. */
export function goTo(place: Place, focused: string): void {
  if (location.hash === hrefOf(place)) {
    document.getElementById(focused)?.focus()
    return
  }
  focusedNext = focused
  location.hash = hrefOf(place)
}

function placeNow(): Place {
  const [, view = '', id] = /^#([a-z-]+?)(?:-(\d+))?$/.exec(location.hash) ?? []
  const list = lists.find((name) => name === view)
  if (list !== undefined) return { view: list }
  const isOfOne = id !== undefined && (view === 'entry' || view === 'subscription')
  return isOfOne ? { view, id: Number(id) } : { view: 'time-line' }
}
