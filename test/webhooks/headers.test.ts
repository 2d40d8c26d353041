import { type CallbackRequest, DeliveryReceiver } from 'notification-subscriber/webhooks'
import { describe, expect, test, vi } from 'vitest'
import { deferred } from '../support/deferred.js'
import { authenticated, post, secrets } from './support.js'

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

  test('gives nothing for a header that was sent twice, or is a list', async () => {
    const sent = { ...authenticated, userdata: 'a', UserData: 'b', list: ['a'] }
    expect(await headersSeen(sent, 'userdata', 'list')).toEqual([undefined, undefined])
  })

  test('reaches onError, and works after the answer', async () => {
    const { promise, resolve } = deferred<void>()
    const seen = vi.fn()
    const receiver = new DeliveryReceiver({
      secrets,
      ackTimeoutMs: 0,
      onError: (_error, _notification, context) => seen(context.header('userdata')),
    }).onAny(async () => {
      await promise
      throw new Error('no database')
    })
    await receiver.handle(post({ ...authenticated, userdata: 'tenant=acme' }))
    resolve()
    await receiver.drain()
    expect(seen).toHaveBeenCalledExactlyOnceWith('tenant=acme')
  })
})
