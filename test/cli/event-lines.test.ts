import { stripVTControlCharacters } from 'node:util'
import { startEmulator } from 'notification-subscriber/emulator'
import { expect, onTestFinished, test } from 'vitest'
import { printEvents } from '../../src/cli/event-lines.js'
import { create, created, Receiver } from '../emulator/support.js'
import { recordingTerminal } from './support.js'

/** Plays a short life with secrets, and a user name that would clear a terminal. */
async function printed(json: boolean): Promise<string[]> {
  await using emulator = await startEmulator()
  await using receiver = await Receiver.startInsecure()
  const { terminal, lines } = recordingTerminal(json)
  onTestFinished(() => emulator.close())
  printEvents(emulator, terminal)
  const username = 'eve\u001b[2J'
  const subscription = { users: username, url: `${receiver.url}?key=hush`, fields: { token: 'hush' } }
  await created(emulator, subscription)
  await create(emulator, { ...subscription, users: `${username},mallory` })
  receiver.reactions.push(204)
  emulator.injectFault('callback', { status: 503 }, { times: 3 })
  for (let i = 0; i < 3; i++) await emulator.notify({ type: 'lowEnergyAgentOpened', username })
  return lines.map((line) => line.replaceAll(receiver.url, '<receiver>'))
}

test('lines for people have no secrets and no control characters', async () => {
  const lines = await printed(false)
  const text = lines.join('\n')
  expect(text).not.toContain('hush')
  expect(text).toBe(stripVTControlCharacters(text))
  expect(lines.map((line) => line.replace(/^[\d:]+ +/, '').replace(/\d+ ms/, 'N ms'))).toEqual([
    'created   1  behavioral of eve [2J → <receiver>?…',
    'request   POST  /api/subscriptions  201  N ms',
    'request   POST  /api/subscriptions  409  N ms, partial_overlap',
    'callback  1 → <receiver>?…  503  N ms, injected fault',
    'callback  1 → <receiver>?…  503  N ms, injected fault',
    'callback  1 → <receiver>?…  503  N ms, injected fault',
    'ended     1  three callbacks in a row failed',
  ])
})

test('lines for programs have the fields, without headers, bodies and secrets', async () => {
  const lines = await printed(true)
  expect(lines.join('\n')).not.toContain('hush')
  const events = lines.map((line) => JSON.parse(line))
  expect(events.map(({ event }) => event)).toEqual([
    ...['created', 'request', 'request', 'callback', 'callback', 'callback', 'ended'],
  ])
  expect(events[6]).toEqual({
    event: 'ended',
    subscriptionId: 1,
    notificationTypes: ['behavioral'],
    usernames: ['eve\u001b[2J'],
    callbackUrl: '<receiver>?…',
    parameterNames: ['token'],
    consecutiveFailures: 3,
    reason: 'three-failures',
  })
})
