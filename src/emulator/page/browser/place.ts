/** Where the page is: in its address, so that a reload, a link and the buttons of the browser lead there. */

const lists = ['time-line', 'subscriptions', 'send', 'faults'] as const

export type Place =
  | { readonly view: (typeof lists)[number] }
  | { readonly view: 'entry' | 'subscription'; readonly id: number }

export function hrefOf(place: Place): string {
  return 'id' in place ? `#${place.view}-${place.id}` : `#${place.view}`
}

/** Goes there at once, and moves the focus to the element with this ID. */
export function goTo(place: Place, focused: string): void {
  location.hash = hrefOf(place)
  // The event of the browser comes later: the element may not exist before it.
  dispatchEvent(new Event('hashchange'))
  document.getElementById(focused)?.focus()
}

export function placeNow(): Place {
  const [, view = '', id] = /^#([a-z-]+?)(?:-(\d+))?$/.exec(location.hash) ?? []
  const list = lists.find((name) => name === view)
  if (list !== undefined) return { view: list }
  const isOfOne = id !== undefined && (view === 'entry' || view === 'subscription')
  return isOfOne ? { view, id: Number(id) } : { view: 'time-line' }
}
