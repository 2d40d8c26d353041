/** Texts of others: broken where a reader expects it, and JSON indented and coloured. */
import { Fragment, type JSX } from 'preact'

/** After a separator of an address or a name, and before a capital letter in a word. */
const breakPlace = /(?<=\w[/?&=_]|\/\/)(?=\w)|(?<=\w[.@-])(?=[a-z])|(?<=[a-z])(?=[A-Z])/

/** An address or a name that breaks between its parts if it does not fit into a line. */
export function Breakable({ text }: { text: string }): JSX.Element {
  return (
    <>
      {text.split(breakPlace).map((part, index) => (
        <Fragment key={index}>
          {index > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </>
  )
}

/** A string that is not closed ends with the text: looking for its end from each quote would take quadratic time. */
export const tokens = /("(?:\\.|[^"\\])*"?)(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** The text indented, if it is JSON and complete; else as it is. */
export function prettyJson(text: string): string {
  // If so many are nested, the indentation itself would be long.
  const brackets = text.match(/[[{]/g)?.length ?? 0
  if (brackets > 1_000) return text
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
