/** Where the page is: in its address, so that a reload, a link and the buttons of the browser lead there. */
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'

export type Place =
  | { readonly view: 'time-line' | 'subscriptions' | 'send' | 'faults' }
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
  const [, view, id] =
    /^#(time-line|subscriptions|send|faults|entry|subscription)(?:-(\d+))?$/.exec(location.hash) ?? []
  switch (view) {
    case 'entry':
    case 'subscription':
      return id === undefined ? { view: 'time-line' } : { view, id: Number(id) }
    case 'subscriptions':
    case 'send':
    case 'faults':
      return { view }
    default:
      return { view: 'time-line' }
  }
}
