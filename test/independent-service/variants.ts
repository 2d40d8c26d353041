/** Services that differ in what the interface document leaves open, and what each means for a subscriber. */
import type { Routes } from 'notification-subscriber'
import type { ServiceRoute, ServiceSettings } from './start.js'

export interface Variant {
  readonly name: string
  readonly service: ServiceSettings
  /** What the client and `check` are told about the routes. */
  readonly routes?: Routes
  /** Basic credentials instead of client credentials. */
  readonly isBasic?: boolean
  /** The client cannot know where update and unsubscribe are: what both fail with. */
  readonly wrongRoutes?: { readonly code: 'SUBSCRIPTION_NOT_FOUND' | 'API'; readonly status: number }
  /** The service refuses every other request as busy. */
  readonly isBusy?: boolean
  /** Steps of `check --lifecycle` that must not be ticked. */
  readonly differs?: readonly string[]
}

const posted = (path: string, id: ServiceRoute['id'], field: string): ServiceRoute => ({
  ...{ method: 'POST', path, id, field },
  status: 200,
})

const elsewhere = {
  unsubscribe: posted('/api/subscriptions/unsubscribe', 'form', 'subscription_id'),
  update: posted('/api/subscriptions/update', 'form', 'subscription_id'),
} as const

const routes: readonly Variant[] = [
  { name: 'routes of the public developer pages', service: {} },
  {
    name: 'POST with the id in a form',
    service: elsewhere,
    routes: {
      unsubscribe: { method: 'POST', path: '/api/subscriptions/unsubscribe', idField: 'subscription_id' },
      update: { method: 'POST', path: '/api/subscriptions/update', idField: 'subscription_id' },
    },
  },
  {
    name: 'the id in the query',
    service: {
      unsubscribe: { method: 'POST', path: '/api/unsubscribe', id: 'query', field: 'id', status: 200 },
      update: {
        ...{ method: 'PUT', path: '/api/subscriptions', id: 'query', field: 'id' },
        status: 200,
      },
    },
    routes: {
      unsubscribe: { method: 'POST', path: '/api/unsubscribe?id={subscriptionId}' },
      update: { path: '/api/subscriptions?id={subscriptionId}' },
    },
  },
  {
    name: 'PATCH with the id in the path',
    service: { update: { method: 'PATCH', path: '/api/subscriptions/{id}', id: 'path', status: 200 } },
    routes: { update: { method: 'PATCH' } },
  },
  { name: '410 for what does not exist', service: { missing: 410 } },
]

const none = { unsubscribe: null, update: null } as const

const wrongRoutes = (
  [
    ['routes elsewhere, 404', elsewhere, 404],
    ['routes elsewhere, 404 in HTML', { ...elsewhere, errors: 'html' }, 404],
    ['routes elsewhere, 404 without a body', { ...elsewhere, errors: 'empty' }, 404],
    ['no such routes, 404', none, 404],
    ['no such routes, 405', { ...none, unknown: { status: 405 } }, 405],
    ['no such routes, 501', { ...none, unknown: { status: 501 } }, 501],
    ['no such routes, redirected', { ...none, unknown: { status: 302, location: '/login' } }, 302],
  ] as const
).map(([name, service, status]): Variant => {
  const code = status === 404 ? 'SUBSCRIPTION_NOT_FOUND' : 'API'
  const differs = ['Update', 'Unsubscribe', 'Clean-up']
  return { name, service, wrongRoutes: { code, status }, differs }
})

const errorBodies: readonly Variant[] = (['html', 'problem', 'empty'] as const).map((errors) => ({
  name: `error bodies: ${errors}`,
  service: { errors },
}))

const ids: readonly Variant[] = [
  { name: 'ids from 0', service: { firstId: 0 } },
  { name: 'negative ids', service: { firstId: -1, idStep: -1 } },
  { name: 'largest ids', service: { firstId: Number.MAX_SAFE_INTEGER, idStep: -1 } },
  { name: 'smallest ids', service: { firstId: Number.MIN_SAFE_INTEGER } },
  { name: 'ids as text in answers and callbacks', service: { idAsText: ['answer', 'callback'] } },
  { name: 'negative ids as text', service: { firstId: -1, idStep: -1, idAsText: ['answer'] } },
]

const transfer: readonly Variant[] = [
  { name: '200 for 201', service: { created: 200 }, differs: ['Create', 'Recreate'] },
  { name: 'chunked answers, and gzip where it is accepted', service: { chunked: true, gzip: 'accepted' } },
  { name: 'HTTP/1.0', service: { http: '1.0' } },
  {
    name: 'all below a prefix, and a connection for each request',
    service: { prefix: '/notifications/v2', close: true },
  },
  { name: 'tokens that live for two seconds', service: { expiresIn: 2 } },
  {
    name: 'a token type in capitals, and its lifetime as text',
    service: { tokenType: 'BEARER', expiresInAsText: true },
  },
  { name: 'gzip of error bodies, which is not accepted', service: { gzip: 'errors' } },
  { name: 'the form is looked at before the credentials', service: { formFirst: true } },
  { name: 'permitted headers', service: { permittedHeaders: ['X-Tenant'] } },
  { name: 'user name and password', service: {}, isBasic: true },
]

const busy = (['seconds', 'date'] as const).map((retryAfter): Variant => {
  const name = `every other request: 429, with Retry-After: ${retryAfter}`
  return { name, service: { busy: { status: 429, retryAfter } }, isBusy: true }
})

export const variants = [...routes, ...wrongRoutes, ...errorBodies, ...ids, ...transfer, ...busy]
