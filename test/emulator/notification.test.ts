import { documentedNotificationTypes, parseDelivery } from 'notification-subscriber'
import { type EmulatedNotification, startEmulator } from 'notification-subscriber/emulator'
import { expect } from 'vitest'
import { InvalidRequestError } from '../../src/errors.js'
import { failureOf } from '../support/failure.js'
import { expectPage, problemsIn } from '../support/message-page.js'
import { testWith } from '../support/test-with.js'
import { created, Receiver } from './support.js'

const test = testWith(startEmulator)

test('every documented type needs no more than a user, and is valid', async (emulator) => {
  await using receiver = await Receiver.start(emulator)
  for (const [category, types] of Object.entries(documentedNotificationTypes)) {
    await created(emulator, { types: category, users: 'bob', url: `${receiver.url}/${category}` })
    for (const type of types) await emulator.notify({ type, username: 'bob' })
  }
  const delivered = receiver.callbacks.map(({ path, body }) => {
    const { type, payload } = parseDelivery(JSON.stringify(body)).notification
    return [path.split('/').at(-1), type, payload]
  })
  const lowEnergy = { callId: 'call-1', username: 'bob', bTime: 21_648, nTime: 35_912, idx: 0 }
  expect(delivered).toEqual(
    Object.entries(documentedNotificationTypes).flatMap(([category, types]) =>
      types.map((type) => [category, type, type === 'lowEnergyAgentOpened' ? lowEnergy : {}]),
    ),
  )
})

test('fields that are given are delivered as they are, and the category may be another', async (emulator) => {
  await using receiver = await Receiver.start(emulator)
  await created(emulator, { types: 'call-score', url: receiver.url })
  const given = { payload: { username: 'carol' }, id: 'n1', time: 5, ver: '2.0' }
  await emulator.notify({ type: 'lowEnergyAgentOpened', username: 'alice', category: 'call-score', ...given })
  expect(receiver.callbacks[0]?.body.notification).toEqual({ type: 'lowEnergyAgentOpened', ...given })
  expect(emulator.callbacks).toMatchObject([{ type: 'lowEnergyAgentOpened', username: 'alice' }])
})

test('a payload that changes while its callback waits is delivered as it was', async (emulator) => {
  await using receiver = await Receiver.start(emulator)
  await created(emulator, { url: receiver.url })
  const payload = { score: 1 }
  const sent = emulator.notify({ type: 'silenceHighOpened', username: 'alice', payload })
  payload.score = 2
  await sent
  expect(receiver.callbacks).toMatchObject([{ body: { notification: { payload: { score: 1 } } } }])
})

const problems = {
  'a type that is not documented, without a category': { type: 'brandNew' },
  'a misspelt type, without a category': { type: 'lowEnergyAgentOpen' },
  'a delivered type as the category': { type: 'x', category: 'cxScoreUpdated' },
  'no user': { username: undefined },
  'a list as the payload': { payload: [] },
  'a time that is no integer': { time: 1.5 },
  'a field that does not exist': { version: '2' },
}

test('what cannot be delivered is refused, with the place and the reason of each problem', async (emulator) => {
  const messages: Record<string, string> = {}
  for (const [name, changes] of Object.entries(problems)) {
    const notification = { type: 'cxScoreUpdated', username: 'a', ...changes } as EmulatedNotification
    const error = await failureOf(emulator.notify(notification))
    expect(error).toBeInstanceOf(InvalidRequestError)
    messages[name] = problemsIn(error)
  }
  await expectPage('problems-of-notifications', messages)
})
