/** Copies a text and says so. */
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Icon } from './icon.js'

export interface CopyButtonProps {
  /** Names what is copied, e.g. "the address". */
  readonly what: string
  /** The text, or a function that fetches it. */
  readonly text: string | (() => Promise<string>)
  /** Shown beside the icon; without it the button is an icon only. */
  readonly label?: string
}

export function CopyButton({ what, text, label }: CopyButtonProps): JSX.Element {
  const [state, setState] = useState<'ready' | 'copied' | 'failed'>('ready')
  useEffect(() => {
    if (state === 'ready') return
    const timer = setTimeout(() => setState('ready'), 2_000)
    return () => clearTimeout(timer)
  }, [state])

  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(typeof text === 'string' ? text : await text())
      setState('copied')
    } catch {
      setState('failed')
    }
  }

  const says = { ready: label ?? '', copied: 'Copied', failed: 'Not allowed to copy' }[state]
  return (
    <button
      type="button"
      class={label === undefined ? 'button quiet small' : 'button small'}
      aria-label={state === 'ready' ? `Copy ${what}` : undefined}
      title={`Copy ${what}`}
      onClick={copy}
    >
      <Icon name={state === 'copied' ? 'check' : 'copy'} />
      {says !== '' && <span role="status">{says}</span>}
    </button>
  )
}
