/** JSON, indented and coloured. */
import type { JSX } from 'preact'

const tokens = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** The text indented, if it is JSON and complete; else as it is. */
export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return text
  }
}

export function JsonText({ text }: { text: string }): JSX.Element {
  const parts: (JSX.Element | string)[] = []
  let end = 0
  for (const match of text.matchAll(tokens)) {
    const [whole, string, colon] = match
    parts.push(text.slice(end, match.index))
    const kind = string === undefined ? 'number' : colon === undefined ? 'string' : 'name'
    parts.push(
      <span key={match.index} class={`json-${kind}`}>
        {whole}
      </span>,
    )
    end = match.index + whole.length
  }
  return (
    <>
      {parts}
      {text.slice(end)}
    </>
  )
}
