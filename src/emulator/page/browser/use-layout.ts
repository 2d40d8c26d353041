/** Which of the three arrangements fits the window. */
import { useEffect, useState } from 'preact/hooks'

export type Layout = 'wide' | 'medium' | 'narrow'

const wide = matchMedia('(min-width: 1180px)')
const narrow = matchMedia('(max-width: 859px)')

export function useLayout(): Layout {
  const [layout, setLayout] = useState(layoutNow)
  useEffect(() => {
    const update = () => setLayout(layoutNow())
    for (const query of [wide, narrow]) query.addEventListener('change', update)
    // An effect runs after the first paint: by then the window may have another width.
    update()
    return () => {
      for (const query of [wide, narrow]) query.removeEventListener('change', update)
    }
  }, [])
  return layout
}

function layoutNow(): Layout {
  if (wide.matches) return 'wide'
  return narrow.matches ? 'narrow' : 'medium'
}
