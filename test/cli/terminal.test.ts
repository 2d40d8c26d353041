import { expect, test } from 'vitest'
import { Terminal } from '../../src/cli/terminal.js'
import { recordingTerminal } from './support.js'

function printed({ isTTY = false, env = {} }: { isTTY?: boolean; env?: Record<string, string> }): string {
  let text = ''
  const write = (written: string) => {
    text += written
  }
  const terminal = new Terminal({ json: false, output: { write, isTTY } as never, env })
  terminal.line(terminal.paint('red', 'Failed.'))
  terminal.event('failed', { status: 500 })
  return text
}

test('colours are for terminals that show them, and not with NO_COLOR', () => {
  const red = '\u001b[31mFailed.\u001b[39m\n'
  expect(printed({ isTTY: true })).toBe(red)
  expect(printed({ isTTY: true, env: { NO_COLOR: '' } })).toBe(red)
  for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }])
    expect(printed({ isTTY: true, env })).toBe('Failed.\n')
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
