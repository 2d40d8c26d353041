import { expect, test } from 'vitest'
import { durationInWords, Terminal } from '../../src/cli/terminal.js'
import { recordingTerminal } from './support.js'

test.each([
  [0, '0 ms'],
  [340.4, '340 ms'],
  [1_000, '1 s'],
  [1_240, '1.2 s'],
  [9_990, '10 s'],
  [89_600, '90 s'],
  [120_000, '2 minutes'],
  [3_599_000, '60 minutes'],
  [2 * 3_600_000, '2 hours'],
  [47 * 3_600_000, '47 hours'],
  [72 * 3_600_000, '3 days'],
])('a duration of %i ms is "%s"', (durationMs, words) => {
  expect(durationInWords(durationMs)).toBe(words)
})

function printed(options: { json?: boolean; isTTY?: boolean; env?: Record<string, string> }): string {
  let text = ''
  const write = (written: string) => {
    text += written
  }
  const { json = false, isTTY = false, env = {} } = options
  const terminal = new Terminal({ json, output: { write, isTTY } as never, env })
  terminal.line(terminal.paint('red', 'Failed.'))
  terminal.event('failed', { status: 500 })
  return text
}

test('prints lines for people, or objects for programs', () => {
  expect(printed({})).toBe('Failed.\n')
  expect(printed({ json: true })).toBe('{"event":"failed","status":500}\n')
})

test('colours are for terminals, and not with NO_COLOR', () => {
  const red = '\u001b[31mFailed.\u001b[39m\n'
  expect(printed({ isTTY: true })).toBe(red)
  expect(printed({ isTTY: true, env: { NO_COLOR: '' } })).toBe(red)
  expect(printed({ isTTY: true, env: { NO_COLOR: '1' } })).toBe('Failed.\n')
})

test('a text from outside cannot steer the terminal, and is the same to a program', () => {
  const text = 'a\u001b[2J\u001b]52;c;aGk=\u0007b\rc\u009b2Jd\u202ee\u2066f\u007f'
  const { terminal, lines } = recordingTerminal()
  terminal.line(text)
  expect(lines).toEqual(['a [2J ]52;c;aGk= b c 2Jd e f '])
  const { terminal: forPrograms, lines: objects } = recordingTerminal(true)
  forPrograms.event('step', { text })
  expect(objects[0]).toMatch(/^[\x20-\x7e]*$/)
  expect(JSON.parse(objects[0] ?? '')).toEqual({ event: 'step', text })
})
