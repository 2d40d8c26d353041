/** What real Redis libraries throw holds the password or the job: none of it reaches a log of pino or of the console. */
import { format } from 'node:util'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { DeliverySpool } from 'notification-subscriber/spool'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { fakeService, subscription } from '../../support/fake-service.js'
import { RedisServer } from '../../support/redis-server.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { lowEnergyDelivery } from '../../webhooks/deliveries.js'
import { ioredisOn, nodeRedisOn } from './stores.js'

const password = 'the-new-password-not-yet-set'

/** Everything that is logged: by pino, and by what logs without a logger. */
function recording() {
  const lines: string[] = []
  const written = vi.spyOn(console, 'error').mockImplementation((...args) => void lines.push(format(...args)))
  onTestFinished(() => written.mockRestore())
  const logger = pino({ level: 'debug' }, { write: (line) => lines.push(line) })
  return { logger, text: () => lines.join('\n') }
}

const libraries = { ioredis: ioredisOn, 'node-redis': nodeRedisOn }

test.each(
  Object.entries(libraries).flatMap(([library, open]) =>
    (['pino', 'the console'] as const).map((target) => ({ library, open, target })),
  ),
)('the password that Redis refuses: $library, $target', async ({ open, target }) => {
  await using server = await RedisServer.start()
  const owner = new Redis(server.url)
  await owner.call('CONFIG', 'SET', 'requirepass', 'the-old-password')
  owner.disconnect()
  const { logger, text } = recording()
  const { store, close } = open(`redis://:${password}@127.0.0.1:${server.port}`)
  const keeper = new SubscriptionKeeper({
    ...subscription,
    client: fakeService().client(),
    name: 'coaching',
    store,
    parameters: { token: 'a-secret-of-tests' },
    ...(target === 'pino' && { logger }),
  })
  keeper.start()
  await eventually(() => expect(text()).toContain('problem.began'))
  await keeper.stop()
  await close()
  expect(text()).not.toContain(password)
})

test('the delivery that a replica does not take from BullMQ', async () => {
  await using primary = await RedisServer.start()
  await using server = await RedisServer.start({ replicaOf: primary.port })
  const connection = new Redis(server.url, { enableOfflineQueue: false, maxRetriesPerRequest: null })
  connection.on('error', () => {})
  await eventually(async () => expect(await connection.ping()).toBe('PONG'))
  const queue = new Queue('notifications', { connection, skipMetasUpdate: true })
  queue.on('error', () => {})
  await using folder = await temporaryFolder()
  const { logger, text } = recording()
  const { subscriptionId, notification } = lowEnergyDelivery()
  const payload = { ...Object(notification.payload), callId: 'CALL-OF-A-CUSTOMER-4711' }
  const spool = await DeliverySpool.open({
    path: `${folder.path}/spool`,
    logger,
    deliver: (delivery) => queue.add(delivery.notification.type, delivery),
  })
  await spool.keep(undefined, { delivery: { subscriptionId, notification: { ...notification, payload } } })
  await eventually(() => expect(text()).toContain('spool.failed'))
  await spool.close({ timeoutMs: 0 })
  await queue.close().catch(() => {})
  connection.disconnect()
  expect(text()).toContain('READONLY')
  expect(text()).not.toContain('CALL-OF-A-CUSTOMER')
})
