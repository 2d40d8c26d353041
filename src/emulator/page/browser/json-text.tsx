/** JSON, indented and coloured. */
import type { JSX } from 'preact'

/** A string that is not closed ends with the text: looking for its end from each quote would take quadratic time. */
export const tokens = /("(?:\\.|[^"\\])*"?)(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Deeper, the indentation itself would be long. */
const maxIndentedDepth = 100

/** The text indented, if it is JSON, complete, and not nested too deeply; else as it is. */
export function prettyJson(text: string): string {
  if (depthOf(text) > maxIndentedDepth) return text
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return text
  }
}

/** How many brackets are open at once; those in strings count, too. */
function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  for (const character of text) {
    if (character === '[' || character === '{') deepest = Math.max(deepest, ++depth)
    else if (character === ']' || character === '}') depth--
  }
  return deepest
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
