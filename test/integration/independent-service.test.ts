/**
 * The SDK against an implementation of the service in another language, which was written from the interface document
 * alone. A row is a service that differs in what the document leaves open; a test is what must hold on each.
 */
import { createServer } from 'node:https'
import { NotificationClient, type NotificationClientOptions, type Routes } from 'notification-subscriber'
import { type KeeperGap, SubscriptionKeeper } from 'notification-subscriber/keeper'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { PrintedStep } from '../cli/check-support.js'
import { call } from '../cli/support.js'
import { type IndependentService, startIndependentService } from '../independent-service/start.js'
import { type Variant, variants } from '../independent-service/variants.js'
import { refusingPort, serving } from '../support/listen.js'

const nowhere = `https://127.0.0.1:${refusingPort}`
const token = 'secret-of-the-receiver'
const tenant = 'tenant-of-the-receiver'
const domain = 'acme'
const clientId = 'client-7'
const clientSecret = 's3cret'
const basic = { username: 'service-user', password: 'p4ssword' }

function clientOptions(service: IndependentService, { isBasic, routes }: Variant): NotificationClientOptions {
  const { authUrl, baseUrl, ca } = service
  const auth = isBasic ? basic : { authUrl, domain, clientId, clientSecret }
  // Two dozen services start at once: on a busy machine the first handshakes took longer than the default, 30 s.
  return { baseUrl, auth, ca, routes, logger: false, timeoutMs: 200_000 }
}

/** Subscribes one user to one type. */
function wanted(username: string, callbackUrl = `${nowhere}/notifications`) {
  return {
    notificationTypes: ['behavioral' as const],
    usernames: [username],
    callbackUrl,
    parameters: { token },
  }
}

async function startReceiver(
  { tls }: IndependentService,
  secrets: Readonly<Record<string, string>>,
  onInvalid: (error: unknown) => void,
) {
  const receiver = new DeliveryReceiver({ secrets, onInvalid, onRefused: () => {} })
  const server = await serving(createServer(tls, toNodeHandler(receiver)))
  return { ...server, receiver, url: `https://${server.host}/notifications` }
}

/** The routes as `check` reads them: METHOD PATH [ID_FIELD]. */
function routeVariables(routes: Routes = {}): Record<string, string> {
  const variables = Object.entries(routes).map(
    ([name, { method = 'PUT', path = '/api/subscriptions/{subscriptionId}', idField }]) => [
      `NOTIFICATION_${name.toUpperCase()}_ROUTE`,
      [method, path, idField].filter((part) => part !== undefined).join(' '),
    ],
  )
  return Object.fromEntries(variables)
}

async function check(service: IndependentService, { routes, isBasic }: Variant, ...flags: string[]) {
  const credentials = isBasic
    ? { NOTIFICATION_USERNAME: basic.username, NOTIFICATION_PASSWORD: basic.password }
    : {
        NOTIFICATION_AUTH_URL: service.authUrl,
        NOTIFICATION_DOMAIN: domain,
        NOTIFICATION_CLIENT_ID: clientId,
        NOTIFICATION_CLIENT_SECRET: clientSecret,
      }
  const { code, stdout } = await call(['check', '--json', ...flags], {
    NOTIFICATION_BASE_URL: service.baseUrl,
    NOTIFICATION_CA_FILE: service.caFile,
    ...credentials,
    ...routeVariables(routes),
  })
  for (const secret of [token, clientSecret, basic.password]) expect(stdout).not.toContain(secret)
  const lines: (PrintedStep & { event: string })[] = stdout.split('\n').map((line) => JSON.parse(line))
  return { code, steps: lines.filter(({ event }) => event === 'step') }
}

/** The steps of `check --lifecycle`. */
const lifecycle = [
  'Create',
  'Duplicate',
  'Overlap with recreateIfExists',
  'Recreate',
  'Update',
  'Unsubscribe',
  'Clean-up',
]

function outcomesIn(steps: readonly PrintedStep[]): Partial<Record<string, string>> {
  return Object.fromEntries(steps.map(({ name, outcome }) => [name, outcome]))
}

/** The users of the keeper's tests; each test has a callback URL of its own. */
const usernames = ['alice', 'bob', 'carol']

/** Processes of one keeper, one after the other. */
function keepersOf(service: IndependentService, client: NotificationClient, path: string) {
  const gaps: KeeperGap[] = []
  const store = new Map()
  const url = `${nowhere}/${path}`
  return {
    gaps,
    start: () =>
      new SubscriptionKeeper({
        ...{ client, store, usernames, name: 'team' },
        notificationTypes: ['behavioral'],
        callbackUrl: url,
        parameters: { token },
        onGap: (gap) => gaps.push(gap),
        onProblem: () => {},
        logger: false,
      }),
    subscriptions: async () =>
      (await service.subscriptions()).filter(({ callbackUrl }) => callbackUrl === url),
  }
}

const routesProblem = expect.objectContaining({
  code: 'ROUTES',
  message: expect.stringMatching(
    /routes\.update[\s\S]*routes\.unsubscribe|routes\.unsubscribe[\s\S]*routes\.update/,
  ),
})

describe.concurrent.each(variants)('$name', (variant) => {
  const { wrongRoutes, isBusy = false } = variant
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

  describe.sequential('client and receiver', () => {
    test('a create, its duplicate, a partial overlap and a recreate', async () => {
      const input = wanted('dora')
      const { subscriptionId } = await client.createSubscription(input)
      await expect(client.createSubscription(input)).rejects.toMatchObject({ code: 'SUBSCRIPTION_CONFLICT' })
      const overlapping = { ...input, usernames: ['dora', 'emil'], recreateIfExists: true }
      await expect(client.createSubscription(overlapping)).rejects.toMatchObject({
        reason: 'partial-overlap',
      })
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
      await using receiving = await startReceiver(service, secrets, (error) => void invalid.push(error))
      const handled: unknown[] = []
      receiving.receiver.on('lowEnergyAgentOpened', ({ id }, delivery) => {
        handled.push([delivery.subscriptionId, id])
      })
      const headers = { 'x-tenant': tenant }
      const { subscriptionId } = await client.createSubscription({
        ...wanted('fred', receiving.url),
        headers,
      })
      const [{ notificationId, ...callback } = { notificationId: '' }] = await service.notify('fred')
      await receiving.receiver.drain()
      expect(invalid).toEqual([])
      expect(callback).toEqual({ id: subscriptionId, status: 204, ended: false })
      expect(handled).toEqual([[subscriptionId, notificationId]])
    })

    if (wrongRoutes === undefined) {
      test('an update changes what callbacks carry', async () => {
        const { subscriptionId } = await client.createSubscription(wanted('hanna'))
        const parameters = { token: 'the-next-secret-of-it' }
        await client.updateSubscriptionParameters(subscriptionId, { parameters })
        const subscriptions = await service.subscriptions()
        expect(subscriptions.find(({ id }) => id === subscriptionId)?.values).toEqual(parameters)
      })

      test('an unsubscribe ends a subscription, which is then not found', async () => {
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

  describe.sequential('keeper', () => {
    test('subscribes, and restores what has ended', async () => {
      const keepers = keepersOf(service, client, 'restores')
      await using keeper = keepers.start()
      expect(await keeper.sweep()).toMatchObject({ created: 3, active: 3, failed: [] })
      const [ended, ...others] = await keepers.subscriptions()
      await service.end(ended?.id ?? Number.NaN)
      expect(await keeper.sweep()).toMatchObject({ restored: 1, active: 3, failed: [] })
      expect(keepers.gaps).toEqual([expect.objectContaining({ cause: 'ended', username: ended?.users[0] })])
      const now = await keepers.subscriptions()
      expect(now).toHaveLength(3)
      expect(now).toEqual(expect.arrayContaining(others))
    })

    // Only an id that the service gave just now shows that a 404 is about the route: it costs a replacement.
    const replaced = wrongRoutes?.status === 404 ? 1 : 0
    test(`replaces ${replaced} after a restart`, async () => {
      const keepers = keepersOf(service, client, 'restart')
      await using first = keepers.start()
      await first.sweep()
      await first.stop()
      const before = await keepers.subscriptions()
      await using second = keepers.start()
      const report = await second.sweep()
      expect(report).toMatchObject({ created: 0, restored: replaced, active: 3, failed: [] })
      const after = await keepers.subscriptions()
      expect(after).toHaveLength(3)
      expect(after.filter(({ id }) => before.some((each) => each.id === id))).toHaveLength(3 - replaced)
      expect(keepers.gaps.map(({ cause }) => cause)).toEqual(replaced === 0 ? [] : ['replaced'])
      expect(report.problems).toEqual(wrongRoutes === undefined ? [] : [routesProblem])
    })

    test('unsubscribes all, or counts nothing as removed', async () => {
      const keepers = keepersOf(service, client, 'all')
      await using keeper = keepers.start()
      await keeper.sweep()
      const report = await keeper.unsubscribeAll()
      const isRight = wrongRoutes === undefined
      expect([report.removed, report.failed.length]).toEqual(isRight ? [3, 0] : [0, 3])
      // Wrong routes are shown by ending a subscription that was made for it: one user has that one now.
      const left = (await keepers.subscriptions()).flatMap(({ users }) => users)
      expect(left.sort()).toEqual(isRight ? [] : usernames)
    })
  })

  describe.sequential('check', () => {
    test('ticks what an answer proves, and sends nothing that ends or changes a subscription', async () => {
      const { formFirst = false } = variant.service
      const [requests, subscriptions] = [await service.requests(), await service.subscriptions()]
      const { code, steps } = await check(service, variant)
      const outcomes = outcomesIn(steps)
      if (isBusy) expect(outcomes).toMatchObject({ Token: 'failed' })
      else expect(outcomes).toMatchObject({ Authorization: formFirst ? 'unknown' : 'passed' })
      expect(code).toBe(isBusy ? 1 : 0)
      const sent = (await service.requests()).slice(requests.length)
      expect(sent.filter(({ operation, status }) => operation !== 'create' || status < 400)).toEqual([])
      expect(await service.subscriptions()).toEqual(subscriptions)
    })

    // The first answer of each call is what the lifecycle shows: a busy service shows nothing.
    if (isBusy) return
    test('--lifecycle has no false tick, and ends or names each subscription that it made', async () => {
      const flags = ['--lifecycle', '--username', 'lena', '--callback-url', `${nowhere}/check`]
      const { steps } = await check(service, variant, ...flags)
      const isLeft = wrongRoutes !== undefined
      const ticked = steps.filter(({ outcome }) => outcome === 'passed').map(({ name }) => name)
      const { differs = [] } = variant
      expect(lifecycle.filter((name) => !ticked.includes(name))).toEqual(differs)
      const left = (await service.subscriptions()).filter(({ users }) => users.includes('lena'))
      expect(left).toHaveLength(isLeft ? 1 : 0)
      const cleanUp = steps.at(-1)
      expect(cleanUp).toMatchObject({ name: 'Clean-up', outcome: isLeft ? 'failed' : 'passed' })
      for (const { id } of left) expect(cleanUp?.message).toContain(String(id))
    })
  })
})
