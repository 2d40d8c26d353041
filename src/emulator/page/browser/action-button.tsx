/** A button that asks the emulator for something at once, and says how that went. */
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { post, problemOf } from './api.js'
import { Icon, type IconName } from './icon.js'

export interface ActionButtonProps {
  readonly action: string
  readonly body: object
  /** Shown for 3 seconds when the emulator has done it. */
  readonly done: string
  readonly icon?: IconName
  readonly isDangerous?: boolean
  readonly children: ComponentChildren
}

export function ActionButton({
  action,
  body,
  done,
  icon,
  isDangerous,
  children,
}: ActionButtonProps): JSX.Element {
  const [outcome, setOutcome] = useState<{ text: string; isError: boolean }>()
  useEffect(() => {
    if (outcome === undefined) return
    const timer = setTimeout(() => setOutcome(undefined), 3_000)
    return () => clearTimeout(timer)
  }, [outcome])

  async function act(): Promise<void> {
    try {
      await post(action, body)
      setOutcome({ text: done, isError: false })
    } catch (error) {
      setOutcome({ text: problemOf(error), isError: true })
    }
  }

  return (
    <span class="action">
      <button type="button" class={isDangerous === true ? 'button danger' : 'button'} onClick={act}>
        {icon !== undefined && <Icon name={icon} />}
        {children}
      </button>
      <span class={outcome?.isError === true ? 'action-outcome error' : 'action-outcome'} role="status">
        {outcome?.text}
      </span>
    </span>
  )
}
