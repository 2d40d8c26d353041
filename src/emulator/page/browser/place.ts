/** Where the page is: in its address, so that a reload, a link and the buttons of the browser lead there. */
import { useEffect, useState } from 'preact/hooks'

export type Place =
  | { readonly view: 'time-line' | 'subscriptions' | 'send' | 'faults' }
  | { readonly view: 'entry' | 'subscription'; readonly id: number }

const start: Place = { view: 'time-line' }

export function hrefOf(place: Place): string {
  return 'id' in place ? `#${place.view}-${place.id}` : `#${place.view}`
}

export function usePlace(): Place {
  const [place, setPlace] = useState(placeNow)
  useEffect(() => {
    const update = () => setPlace(placeNow())
    addEventListener('hashchange', update)
    return () => removeEventListener('hashchange', update)
  }, [])
  return place
}

/** Goes there, and moves the focus to the element with this ID. */
export function goTo(place: Place, focused: string): void {
  location.hash = hrefOf(place)
  focusSoon(focused)
}

/** Moves the focus to what the next rendering shows. */
export function focusSoon(id: string): void {
  // Preact renders before the browser paints, so the element is there in the frame after that.
  requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById(id)?.focus()))
}

function placeNow(): Place {
  const [, view, id] =
    /^#(time-line|subscriptions|send|faults|entry|subscription)(?:-(\d+))?$/.exec(location.hash) ?? []
  switch (view) {
    case 'entry':
    case 'subscription':
      return id === undefined ? start : { view, id: Number(id) }
    case 'subscriptions':
    case 'send':
    case 'faults':
      return { view }
    default:
      return start
  }
}
