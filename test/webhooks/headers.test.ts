import { type CallbackRequest, DeliveryReceiver } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
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

  test('gives nothing for a header that has two values, and the value of a list of one', async () => {
    const sent = { ...authenticated, one: ['a'], two: ['a', 'b'], none: [] }
    const names = ['one', 'two', 'none']
    expect(await headersSeen(sent, ...names)).toEqual(['a', undefined, undefined])
  })
})
