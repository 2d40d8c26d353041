/** What the page gets as server-sent events. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Batch, Snapshot } from '../../../src/emulator/page/views.js'
import { created, lowEnergy, Receiver, update } from '../support.js'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator({ page: true })
})
afterEach(() => emulator.close())

type PageEvent =
  | { event: 'snapshot'; data: Snapshot }
  | { event: 'batch'; data: Batch }
  | { event: 'closed'; data: undefined }

async function open(query = ''): Promise<IncomingMessage> {
  const sent = request(`${emulator.pageUrl}events${query}`)
  sent.end()
  const [stream] = await once(sent, 'response')
  return stream.setEncoding('utf8')
}

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
    data: { subscriptions: [{ subscriptionId: first }], entries: [{ id: 1, subscriptionId: first }] },
  })
  emulator.injectFault('callback', { status: 500 }, { times: 2 })
  await emulator.notify(lowEnergy)
  emulator.endSubscription(first)
  expect(await next(events)).toMatchObject({
    event: 'batch',
    data: {
      entries: [
        { id: 2, kind: 'callback', fault: 'status 500' },
        { id: 3, kind: 'ended', reason: 'by-request', subscription: { subscriptionId: first } },
      ],
      subscriptions: [],
      faults: [{ sentence: 'The next callback: status 500' }],
    },
  })
})

test('a subscription is sent again with each change of its parameters or failures', async () => {
  await using receiver = await Receiver.start(emulator)
  const subscriptionId = await created(emulator, { url: receiver.url })
  const events = eventsOf(await open())
  await next(events)
  const changed = async () => (await next(events)).data?.subscriptions
  await update(emulator, subscriptionId, 'token=2')
  expect(await changed()).toMatchObject([{ subscriptionId, parameters: [['token', expect.any(String)]] }])
  receiver.reactions.push(500)
  for (const consecutiveFailures of [1, 0]) {
    await emulator.notify(lowEnergy)
    let sent: Awaited<ReturnType<typeof changed>> = []
    while (sent?.length === 0) sent = await changed()
    expect(sent).toMatchObject([{ subscriptionId, consecutiveFailures }])
  }
})

test('a request in flight is shown, and replaced when it was answered', async () => {
  const events = eventsOf(await open())
  await next(events)
  emulator.injectFault('create', { delayMs: 400 })
  const creating = created(emulator)
  const begun: PageEvent[] = []
  do begun.push(await next(events))
  while (!begun.some(({ data }) => data?.entries.length))
  expect(begun.at(-1)?.data?.entries).toEqual([
    expect.not.objectContaining({ durationMs: expect.anything() }),
  ])
  await creating
  expect(await next(events)).toMatchObject({ data: { entries: [{ id: 1, status: 201 }] } })
})

test('secrets are masked, unless the page asks for all of them', async () => {
  await created(emulator, { fields: { token: 'hush' } })
  const { data: masked } = await next(eventsOf(await open()))
  expect(JSON.stringify(masked)).not.toContain('hush')
  const { data: plain } = await next(eventsOf(await open('?secrets')))
  expect(plain).toMatchObject({
    subscriptions: [{ parameters: [['token', 'hush']] }],
    entries: [{ body: expect.stringContaining('token=hush') }],
  })
})

test('a slow reader gets everything that it missed', async () => {
  const events = await open()
  await once(events, 'data')
  events.pause()
  const fetchPath = (path: string) => emulator.fetch(new Request(emulator.baseUrl + path))
  // More than the buffers between the server and a reader hold.
  for (let i = 0; i < 1_000; i++) await fetchPath(`/${'x'.repeat(30_000)}`)
  await sleep(300)
  await fetchPath('/last')
  await sleep(300)
  const pieces: string[] = []
  let end = ''
  for await (const piece of events) {
    pieces.push(piece)
    end = end.slice(-100) + piece
    if (end.includes('"/last"')) break
  }
  const text = pieces.join('')
  expect(text).toContain('"target":"/last"')
  // In place of the changes that did not fit.
  expect(text.match(/^event: snapshot$/gm)).toHaveLength(1)
})

test('the last event says that the emulator was closed', async () => {
  const events = eventsOf(await open())
  await next(events)
  const last = next(events)
  await emulator.close()
  expect(await last).toMatchObject({ event: 'closed' })
})
