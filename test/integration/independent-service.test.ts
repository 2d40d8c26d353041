/**
 * The SDK against an implementation of the service in another language, which was written from the interface document
 * alone. A row is a service that differs in what the document leaves open; a test is what must hold on each.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NotificationClient, type NotificationClientOptions } from 'notification-subscriber'
import { DeliverySpool } from 'notification-subscriber/spool'
import { DeliveryReceiver, type InvalidDeliveryError, toNodeHandler } from 'notification-subscriber/webhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type IndependentService, startIndependentService } from '../independent-service/start.js'
import { type Variant, variants } from '../independent-service/variants.js'
import { eventually } from '../support/eventually.js'
import { startHttps } from './https-server.js'

const token = 'secret-of-the-receiver'
const tenant = 'tenant-of-the-receiver'
const domain = 'acme'
const clientId = 'client-7'
const clientSecret = 's3cret'
const basic = { username: 'service-user', password: 'p4ssword' }

function clientOptions(service: IndependentService, { isBasic, routes }: Variant): NotificationClientOptions {
  const { authUrl, baseUrl, ca } = service
  const auth = isBasic ? basic : { authUrl, domain, clientId, clientSecret }
  return { baseUrl, auth, ca, routes, logger: false }
}

/** Subscribes one user to one type; callbacks go to an address that nothing listens at, unless given. */
function wanted(username: string, callbackUrl = 'https://127.0.0.1:1/notifications') {
  return {
    notificationTypes: ['behavioral' as const],
    usernames: [username],
    callbackUrl,
    parameters: { token },
  }
}

interface ReceiverOptions {
  readonly secrets?: Readonly<Record<string, string>>
  readonly onInvalid?: (error: InvalidDeliveryError) => unknown
}

/** A receiver on loopback. */
async function startReceiver({ tls }: IndependentService, options: ReceiverOptions = {}) {
  const receiver = new DeliveryReceiver({ secrets: { token }, onRefused: () => {}, ...options })
  const server = await startHttps(tls, () => toNodeHandler(receiver))
  return {
    receiver,
    url: `${server.origin}/notifications`,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

describe.concurrent.each(variants)('$name', (variant) => {
  const { wrongRoutes } = variant
  let service: IndependentService
  let client: NotificationClient
  beforeAll(async () => {
    service = await startIndependentService(variant.service)
    client = new NotificationClient(clientOptions(service, variant))
  })
  afterAll(async () => {
    await client.close()
    await service[Symbol.asyncDispose]()
  })

  test('a create, its duplicate, a partial overlap and a recreate', async () => {
    const input = wanted('dora')
    const { subscriptionId } = await client.createSubscription(input)
    await expect(client.createSubscription(input)).rejects.toMatchObject({ code: 'SUBSCRIPTION_CONFLICT' })
    const overlapping = { ...input, usernames: ['dora', 'emil'], recreateIfExists: true }
    await expect(client.createSubscription(overlapping)).rejects.toMatchObject({ reason: 'partial-overlap' })
    const recreated = await client.createSubscription({ ...input, recreateIfExists: true })
    expect(recreated.subscriptionId).not.toBe(subscriptionId)
    const ids = (await service.subscriptions()).map(({ id }) => id)
    expect(ids).toContain(recreated.subscriptionId)
    expect(ids).not.toContain(subscriptionId)
  })

  test('a callback reaches the handler, with parameters and permitted headers', async () => {
    const permitted = variant.service.permittedHeaders !== undefined
    const secrets = permitted ? { token, 'x-tenant': tenant } : { token }
    const invalid: unknown[] = []
    const onInvalid = (error: unknown) => invalid.push(error)
    await using receiving = await startReceiver(service, { secrets, onInvalid })
    const handled: unknown[] = []
    receiving.receiver.on('lowEnergyAgentOpened', ({ id }, delivery) => {
      handled.push([delivery.subscriptionId, id])
    })
    const headers = { 'x-tenant': tenant }
    const { subscriptionId } = await client.createSubscription({ ...wanted('fred', receiving.url), headers })
    const [{ notificationId, ...callback } = { notificationId: '' }] = await service.notify('fred')
    await receiving.receiver.drain()
    expect(invalid).toEqual([])
    expect(callback).toEqual({ id: subscriptionId, status: 204, ended: false })
    expect(handled).toEqual([[subscriptionId, notificationId]])
  })

  test('the spool keeps a delivery and hands it over', async () => {
    const path = await mkdtemp(join(tmpdir(), 'notification-subscriber-spool-'))
    try {
      const delivered: string[] = []
      const deliver = ({ notification }: { notification: { id: string } }) =>
        void delivered.push(notification.id)
      await using spool = await DeliverySpool.open({ path, deliver, logger: false })
      await using receiving = await startReceiver(service, { onInvalid: spool.keepInvalid })
      receiving.receiver.onAny(spool.keep)
      await client.createSubscription(wanted('gina', receiving.url))
      const [callback] = await service.notify('gina')
      expect(callback).toMatchObject({ status: 204 })
      await eventually(() => expect(delivered).toEqual([callback?.notificationId]))
    } finally {
      await rm(path, { recursive: true })
    }
  })

  if (wrongRoutes === undefined) {
    test('an update changes what callbacks carry', async () => {
      const { subscriptionId } = await client.createSubscription(wanted('hanna'))
      const parameters = { token: 'the-next-secret-of-it' }
      await client.updateSubscriptionParameters(subscriptionId, { parameters })
      const subscriptions = await service.subscriptions()
      expect(subscriptions.find(({ id }) => id === subscriptionId)?.values).toEqual(parameters)
    })

    test('an unsubscribe ends; what has ended is not found', async () => {
      const { subscriptionId } = await client.createSubscription(wanted('ivan'))
      await client.unsubscribe(subscriptionId)
      expect((await service.subscriptions()).map(({ id }) => id)).not.toContain(subscriptionId)
      const notFound = { code: 'SUBSCRIPTION_NOT_FOUND', subscriptionId }
      await expect(client.unsubscribe(subscriptionId)).rejects.toMatchObject(notFound)
      const changes = { parameters: { token } }
      await expect(client.updateSubscriptionParameters(subscriptionId, changes)).rejects.toMatchObject(
        notFound,
      )
    })

    test('three failed callbacks in a row end a subscription, and an update shows it', async () => {
      const { subscriptionId } = await client.createSubscription(wanted('jane'))
      const callbacks = [
        await service.notify('jane'),
        await service.notify('jane'),
        await service.notify('jane'),
      ]
      expect(callbacks.flat().map(({ ended }) => ended)).toEqual([false, false, true])
      const changes = { parameters: { token } }
      await expect(client.updateSubscriptionParameters(subscriptionId, changes)).rejects.toMatchObject({
        code: 'SUBSCRIPTION_NOT_FOUND',
      })
    })
  } else {
    test('update and unsubscribe fail with a sentence about `routes`, and change nothing', async () => {
      const { subscriptionId } = await client.createSubscription(wanted('kate'))
      const failure = { ...wrongRoutes, message: expect.stringMatching(/`?routes/) }
      const changes = { parameters: { token: 'the-next-secret-of-it' } }
      await expect(client.unsubscribe(subscriptionId)).rejects.toMatchObject(failure)
      await expect(client.updateSubscriptionParameters(subscriptionId, changes)).rejects.toMatchObject(
        failure,
      )
      const subscriptions = await service.subscriptions()
      expect(subscriptions.find(({ id }) => id === subscriptionId)?.values).toEqual({ token })
    })
  }
})
