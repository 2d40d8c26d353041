import { type CallbackRequest, DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import { authenticated, head, openSocket, post, secrets, serverOf } from './support.js'

describe('context.header', () => {
  async function headersSeen(headers: CallbackRequest['headers'], ...names: string[]) {
    const seen: (string | undefined)[] = []
    const receiver = new DeliveryReceiver({ secrets }).onAny((_, { header }) => {
      seen.push(...names.map(header))
    })
    await receiver.handle(post(headers))
    return seen
  }

  test('gives the associated values of the subscription, by names in any case', async () => {
    const sent = { ...authenticated, UserData: 'tenant=acme', 'x-empty': '' }
    const names = ['userdata', 'UserData', 'token', 'x-empty', 'X-Absent']
    const values = ['tenant=acme', 'tenant=acme', 'the-current-secret', '', undefined]
    expect(await headersSeen(sent, ...names)).toEqual(values)
    expect(await headersSeen(new Headers(sent), ...names)).toEqual(values)
  })

  test('gives nothing for a header that has two values, and the value of a list of one', async () => {
    const sent = { ...authenticated, userdata: 'a', UserData: 'b', one: ['a'], two: ['a', 'b'], none: [] }
    const names = ['userdata', 'one', 'two', 'none']
    expect(await headersSeen(sent, ...names)).toEqual([undefined, 'a', undefined, undefined])
  })

  test('shows what a middleware made of the headers; a header that was sent twice stays so', async () => {
    const seen: unknown[] = []
    const receiver = new DeliveryReceiver({ secrets }).onAny((_, { header }) => {
      seen.push(['renamed', 'changed', 'deleted', 'doubled', 'joined'].map(header))
    })
    const handler = toNodeHandler(receiver)
    await using server = await serverOf((request, response) => {
      request.headers.renamed = request.headers.original
      request.headers.changed = 'by the app'
      delete request.headers.deleted
      handler(request, response)
    })
    const { socket, status } = openSocket(server.port)
    const lines = [
      'Original: a',
      'Changed: by a proxy',
      'Deleted: b',
      'Doubled: c',
      'doubled: c',
      'Joined: d, d',
    ]
    socket.write(head(...lines, 'Content-Length: 500') + String(post().body).padEnd(500))
    expect(await status()).toBe(204)
    socket.destroy()
    expect(seen).toEqual([['a', 'by the app', undefined, undefined, 'd, d']])
  })
})
