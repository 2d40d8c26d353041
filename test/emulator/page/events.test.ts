/** What the page gets as server-sent events. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Batch, Snapshot } from '../../../src/emulator/page/protocol.js'
import { created, createdDirectly, lowEnergy } from '../support.js'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator({ page: true })
})
afterEach(() => emulator.close())

type PageEvent = { id: string } & (
  | { event: 'snapshot'; data: Snapshot }
  | { event: 'batch'; data: Batch }
  | { event: 'closed'; data: undefined }
)

/** Opens the stream, like a browser that had `lastEventId` before. */
async function open(lastEventId?: string): Promise<IncomingMessage> {
  const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
  const sent = request(`${emulator.pageUrl}events`, { headers })
  sent.end()
  const [stream] = await once(sent, 'response')
  return stream.setEncoding('utf8')
}

/** The events of a stream until it ends. */
async function* eventsOf(stream: IncomingMessage): AsyncGenerator<PageEvent> {
  let text = ''
  for await (const piece of stream) {
    const messages = (text + piece).split('\n\n')
    text = messages.pop() ?? ''
    for (const message of messages) {
      const fields = Object.fromEntries(message.split('\n').map((line) => line.split(/: ?(.*)/s, 2)))
      if (fields.event === undefined) continue
      yield { ...fields, data: fields.data === '' ? undefined : JSON.parse(fields.data) } as PageEvent
    }
  }
}

async function next(events: AsyncGenerator<PageEvent>): Promise<PageEvent> {
  const { value, done } = await events.next()
  if (done) throw new Error('the stream has ended')
  return value
}

test('a snapshot comes first, then what changed, each thing once', async () => {
  const first = await created(emulator)
  const events = eventsOf(await open())
  expect(await next(events)).toMatchObject({
    event: 'snapshot',
    data: { subscriptions: [{ subscriptionId: first }], ended: [], endedCount: 0, entries: [{ id: 1 }] },
  })
  emulator.injectFault('callback', { status: 500 }, { times: 2 })
  await emulator.notify(lowEnergy)
  emulator.endSubscription(first)
  expect(await next(events)).toMatchObject({
    event: 'batch',
    data: {
      entries: [
        { id: 2, kind: 'callback', fault: 'status 500' },
        { id: 3, note: 'ended' },
      ],
      subscriptions: [{ subscriptionId: first, ended: { reason: 'by-request' } }],
      faults: [{ remaining: 1 }],
    },
  })
})

test('a request in flight is shown, and replaced when it was answered', async () => {
  const events = eventsOf(await open())
  await next(events)
  emulator.injectFault('create', { delayMs: 400 })
  const creating = created(emulator)
  const begun: PageEvent[] = []
  do begun.push(await next(events))
  while (!begun.some(({ data }) => data?.entries !== undefined))
  expect(begun.at(-1)?.data?.entries).toEqual([
    expect.not.objectContaining({ durationMs: expect.anything() }),
  ])
  await creating
  expect(await next(events)).toMatchObject({ data: { entries: [{ id: 1, status: 201 }] } })
})

test('a page that lost the connection gets what it missed, and nothing if it missed nothing', async () => {
  const { id } = await next(eventsOf(await open()))
  await created(emulator)
  const events = eventsOf(await open(id))
  const missed = await next(events)
  expect(missed).toMatchObject({ event: 'batch', data: { entries: [{ id: 1 }], subscriptions: [{}] } })
  const again = eventsOf(await open(missed.id))
  emulator.revokeTokens()
  expect(await next(again)).toMatchObject({ event: 'batch', data: { entries: [{ id: 2 }] } })
})

test.each(['other 1', 'RUN 999999', 'RUN -1', 'RUN x', 'RUN', ''])(
  'a page with the unknown event id "%s" gets a snapshot',
  async (given) => {
    const [run = ''] = (await next(eventsOf(await open()))).id.split(' ')
    expect(await next(eventsOf(await open(given.replace('RUN', run))))).toMatchObject({ event: 'snapshot' })
  },
)

test('a page that missed more ends than are kept gets a snapshot with the newest', async () => {
  const ids: number[] = []
  for (let i = 0; i < 1_001; i++) ids.push(await createdDirectly(emulator, { users: `user-${i}` }))
  const { id } = await next(eventsOf(await open()))
  for (const each of ids) emulator.endSubscription(each)
  const { event, data } = await next(eventsOf(await open(id)))
  expect(event).toBe('snapshot')
  const { ended, endedCount, subscriptions, entries } = data as Snapshot
  expect([ended.length, endedCount, subscriptions, entries.length]).toEqual([1_000, 1_001, [], 1_000])
  expect(ended[0]?.subscriptionId).toBe(ids[1])
})

test('a reader that was slow gets everything that it missed', async () => {
  const events = await open()
  await once(events, 'data')
  events.pause()
  const fetchPath = (path: string) => emulator.fetch(new Request(emulator.baseUrl + path))
  // More than the buffers between the server and a reader hold.
  for (let i = 0; i < 1_000; i++) await fetchPath(`/${'x'.repeat(30_000)}`)
  await sleep(300)
  await fetchPath('/last')
  await sleep(300)
  let text = ''
  for await (const chunk of events) {
    text = text.slice(-100) + chunk
    if (text.includes('"/last"')) break
  }
  expect(text).toContain('"path":"/last"')
})

test('the last event says that the emulator was closed', async () => {
  const events = eventsOf(await open())
  await next(events)
  const last = next(events)
  await emulator.close()
  expect(await last).toMatchObject({ event: 'closed' })
})
