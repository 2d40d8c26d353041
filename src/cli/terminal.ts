/** What a command prints: lines for people or, with `--json`, one object a line. */

/** ECMA-48 section 8.3.117: the codes that switch each on and off. */
const codes = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const

export type Colour = keyof typeof codes

/** Characters that control a terminal, except the codes above, or change the direction of text. */
const steering = new RegExp(
  `(?!\\u001b\\[(?:${Object.values(codes).flat().join('|')})m)[\\p{Cc}\\p{Bidi_Control}]`,
  'gu',
)

/** A foreign text, made safe for one line of a terminal. */
export function shownOnTerminal(text: string): string {
  return text.replace(steering, ' ')
}

export interface TerminalOptions {
  /** Whether `--json` was given. */
  readonly json: boolean
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean }
  readonly env: Readonly<Record<string, string | undefined>>
}

export class Terminal {
  readonly #isJson: boolean
  readonly #output: TerminalOptions['output']
  readonly #isColoured: boolean

  constructor({ json, output, env }: TerminalOptions) {
    this.#isJson = json
    this.#output = output
    // https://no-color.org: any value except an empty one.
    this.#isColoured = output.isTTY === true && !env.NO_COLOR
  }

  /** A line for people; nothing with `--json`. */
  line(text = ''): void {
    if (!this.#isJson) this.#output.write(`${shownOnTerminal(text)}\n`)
  }

  /** A line for people about a success. */
  success(text: string): void {
    this.line(`${this.paint('green', '✔')} ${text}`)
  }

  /** A line for programs; nothing without `--json`. */
  event(event: string, fields: object): void {
    if (!this.#isJson) return
    // JSON.stringify escapes only some of the characters that control a terminal.
    const json = JSON.stringify({ event, ...fields }).replace(
      steering,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
    this.#output.write(`${json}\n`)
  }

  /** The text in a colour, if the terminal shows colours. */
  paint(colour: Colour, text: string): string {
    if (!this.#isColoured) return text
    // Not `styleText` of Node.js, which has other rules for colours.
    const [on, off] = codes[colour]
    return `\u001b[${on}m${text}\u001b[${off}m`
  }
}
