/** What every consumer does with the package, however it loaded the three doors. */
const assert = require('node:assert/strict')
const { once } = require('node:events')
const { createServer } = require('node:https')

/**
 * @param {typeof import('notification-subscriber')} main
 * @param {typeof import('notification-subscriber/webhooks')} webhooks
 * @param {typeof import('notification-subscriber/emulator')} emulated
 */
module.exports = async function story(main, webhooks, emulated) {
  const emulator = await emulated.startEmulator()
  const client = new main.NotificationClient(emulator.clientOptions)

  const received = []
  const receiver = new webhooks.DeliveryReceiver({ secrets: { token: 'of-this-program-alone' } }).on(
    'lowEnergyAgentOpened',
    ({ payload }, { subscriptionId }) => received.push({ subscriptionId, callId: payload.callId }),
  )
  const server = createServer(emulator.tls, webhooks.toNodeHandler(receiver)).listen(0, '127.0.0.1')
  await once(server, 'listening')

  const subscription = {
    notificationTypes: ['behavioral'],
    usernames: ['alice'],
    callbackUrl: `https://127.0.0.1:${server.address().port}/notifications`,
    parameters: { token: 'of-this-program-alone' },
  }
  const { subscriptionId } = await client.createSubscription(subscription)
  const payload = { callId: 'call-1', username: 'alice', bTime: 21648, nTime: 35912, idx: 0 }
  const callbacks = await emulator.notify({
    type: 'lowEnergyAgentOpened',
    category: 'behavioral',
    username: 'alice',
    payload,
  })
  assert.deepEqual(
    callbacks.map(({ status }) => status),
    [204],
  )
  assert.deepEqual(received, [{ subscriptionId, callId: 'call-1' }])

  await assert.rejects(client.createSubscription(subscription), (error) => {
    assert(error instanceof main.SubscriptionConflictError)
    assert(error instanceof webhooks.NotificationError)
    return true
  })

  const notification = { id: 'n-1', time: 1, ver: '1.0', type: 'lowEnergyAgentOpened', payload }
  const delivery = webhooks.parseDelivery(JSON.stringify({ subscriptionId, notification }))
  assert.equal(delivery.notification.payload.callId, 'call-1')
  assert.throws(() => webhooks.parseDelivery('{}'), main.InvalidDeliveryError)

  await client.unsubscribe(subscriptionId)
  server.close()
  await receiver.drain()
  await client.close()
  await emulator.close()

  // Without a dispatcher the client loads undici itself; the port is closed.
  const { dispatcher: _, ...options } = emulator.clientOptions
  const late = new main.NotificationClient({ ...options, retry: { maxAttempts: 1 } })
  await assert.rejects(late.getAccessToken(), { code: 'CONNECTION' })
  await late.close()

  console.log('The story is over')
}
