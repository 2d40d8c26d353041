/** The page's icons, drawn in the colour of the text. None carries a meaning that no word beside it has. */
import type { JSX } from 'preact'

const paths = {
  in: 'M12 4 4 12M4 5.5V12h6.5',
  out: 'M4 12 12 4M5.5 4H12v6.5',
  ended: 'M3.8 3.8l8.4 8.4M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8Z',
  key: 'M9.5 6.5 3 13v.5h2.2v-1.6h1.6v-1.6l2-2M10.5 8.5a3 3 0 1 0-3-3 3 3 0 0 0 3 3Z',
  bolt: 'M8.8 1.5 3.2 9h4l-.8 5.5L12.8 7h-4z',
  copy: 'M5.5 5.5V3a1 1 0 0 1 1-1H13a1 1 0 0 1 1 1v6.5a1 1 0 0 1-1 1h-2.5M3 5.5h6.5a1 1 0 0 1 1 1V13a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1V6.5a1 1 0 0 1 1-1Z',
  check: 'm2.5 8.5 3.5 3.5 7.5-8',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM10.7 10.7 14 14',
  up: 'M8 13V3M3.5 7.5 8 3l4.5 4.5',
  plug: 'M6 1.5v3M10 1.5v3M4 4.5h8V8a4 4 0 0 1-8 0zM8 12v2.5',
  send: 'M14 2 7 9M14 2 9.5 14 7 9 2 6.5z',
  logo: 'M1.5 9.5h2.5l2-6.5 3.5 10 2-5.5h3',
} as const

export type IconName = keyof typeof paths

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  )
}
