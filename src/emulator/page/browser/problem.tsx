/** What went wrong, read out at once. */
import type { JSX } from 'preact'

export function Problem({ text }: { text: string | undefined }): JSX.Element | undefined {
  if (text === undefined) return undefined
  return (
    <p class="error" role="alert">
      {text}
    </p>
  )
}
