/** What a command prints: lines for people or, with `--json`, one object a line. */
import { inspect, styleText } from 'node:util'
import type { Environment } from '../client/environment.js'
import { clock } from '../emulator/words.js'

const colours = ['bold', 'dim', 'red', 'green', 'yellow', 'cyan'] as const

export type Colour = (typeof colours)[number]

const codes = colours.flatMap((colour) => inspect.colors[colour] ?? [])

/** Characters that control a terminal, except the codes of these colours, or change the direction of text. */
const steering = new RegExp(`(?!\\u001b\\[(?:${codes.join('|')})m)[\\p{Cc}\\p{Bidi_Control}]`, 'gu')

/** A foreign text, made safe for one line of a terminal. */
export function shownOnTerminal(text: string): string {
  return text.replace(steering, ' ')
}

export type Output = Pick<NodeJS.WritableStream, 'write'> & { readonly isTTY?: boolean }

export class Terminal {
  readonly #isJson: boolean
  readonly #output: Output
  readonly #isColoured: boolean

  /** @param given.json - whether `--json` was given */
  constructor({ json, output, env }: { json: boolean; output: Output; env: Environment }) {
    this.#isJson = json
    this.#output = output
    // https://no-color.org: any value except an empty one. A `dumb` terminal, as in editors, shows the codes as text.
    this.#isColoured = output.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
  }

  /** A line for people; nothing with `--json`. */
  line(text = ''): void {
    if (!this.#isJson) this.#output.write(`${shownOnTerminal(text)}\n`)
  }

  /** What happened: an object for programs with `--json`, lines for people without. */
  event(event: string, fields: object, ...lines: readonly string[]): void {
    for (const text of lines) this.line(text)
    if (!this.#isJson) return
    // JSON.stringify escapes only some of the characters that control a terminal.
    const json = JSON.stringify({ event, ...fields }).replace(
      steering,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
    this.#output.write(`${json}\n`)
  }

  /** What the command was called for. */
  success(event: string, fields: object, text: string): void {
    this.event(event, fields, `${this.paint('green', '✔')} ${text}`)
  }

  /** What happened while the command waits: its line begins with the time. */
  timed(event: string, fields: object, ...parts: readonly string[]): void {
    const time = this.paint('dim', clock(Date.now()).slice(0, 8))
    this.event(event, fields, [time, ...parts].join('  '))
  }

  /** The text in a colour, if the terminal shows colours. */
  paint(colour: Colour, text: string): string {
    // Not `styleText` alone, which has other rules for when there are colours.
    return this.#isColoured ? styleText(colour, text, { validateStream: false }) : text
  }
}
