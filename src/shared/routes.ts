/** The endpoints of the service, and the client's option `routes` for those that docs/service.md marks †. */
import * as z from 'zod'
import { parsedUrl } from './addresses.js'

const methods = ['POST', 'PUT', 'PATCH', 'DELETE'] as const

/**
 * Every endpoint of the service, with the place of a variable in braces, and the status that answers a success
 * (docs/service.md, Endpoints). The client takes every 2xx for a success.
 */
export const endpoints = {
  token: { method: 'POST', path: '/auth/realms/{domain}/protocol/openid-connect/token', success: 200 },
  create: { method: 'POST', path: '/api/subscriptions', success: 201 },
  update: { method: 'PUT', path: '/api/subscriptions/{subscriptionId}', success: 200 },
  unsubscribe: { method: 'DELETE', path: '/api/subscriptions/{subscriptionId}', success: 204 },
} as const

/** The fields of a create that are not parameters (docs/service.md, Endpoints). */
export const createFields = ['notification_type', 'username', 'callback_url', 'recreateIfExists'] as const

/** How one operation is called. The subscription's id is in `path`, or in the form under `idField`. */
export interface Route {
  /** Default: see {@link Routes}. */
  readonly method?: (typeof methods)[number] | undefined
  /**
   * Begins with `/`, is added to `baseUrl`, and may have a query. Holds `{subscriptionId}` once for the id, unless there
   * is an `idField`. Default: see {@link Routes}.
   */
  readonly path?: string | undefined
  /** The field of the form that holds the id, such as `subscription_id`. Default: none, the id is in `path`. */
  readonly idField?: string | undefined
}

/** The operations whose method and path may differ: those marked † in docs/service.md, Endpoints. */
export interface Routes {
  /** How a subscription is ended. Default: `DELETE /api/subscriptions/{subscriptionId}`. */
  readonly unsubscribe?: Route | undefined
  /** How parameters are changed. Default: `PUT /api/subscriptions/{subscriptionId}`. */
  readonly update?: Route | undefined
}

export type ResolvedRoute = ReturnType<typeof resolvedRoute>

export type RouteName = keyof Routes

/** In a path, the place of the id. */
export const idPlace = '{subscriptionId}'

/** @param route - valid by {@link routeSchema} */
export function resolvedRoute(name: RouteName, route: Route = {}) {
  const documented = endpoints[name]
  const { idField, method = documented.method, path = documented.path } = route
  return { method, path, idField }
}

export function routesSchema() {
  return z.strictObject({
    unsubscribe: routeSchema('unsubscribe').optional(),
    update: routeSchema('update').optional(),
  })
}

export function routeSchema(name: RouteName): z.ZodType<Route> {
  return z
    .strictObject({
      method: z.enum(methods, `must be ${methods.join(', ')}, in capital letters`).optional(),
      path: z
        .string()
        .refine(isSentAsWritten, {
          abort: true,
          error: `must begin with /, and be written as URLs are, without a fragment and braces other than ${idPlace}`,
        })
        .optional(),
      idField: z
        .string()
        .regex(/^[\x21-\x7e]+$/, 'must be visible ASCII characters')
        .optional(),
    })
    .refine(
      (route) => {
        const { idField, path } = resolvedRoute(name, route)
        return path.split(idPlace).length - 1 === (idField === undefined ? 1 : 0)
      },
      {
        path: ['path'],
        error: `must contain ${idPlace} once, or not at all if \`idField\` names the field of the form that holds the id`,
      },
    )
}

function isSentAsWritten(path: string): boolean {
  const url = `https://host.example${path.replaceAll(idPlace, '1')}`
  return /^\/[^#{}]*$/.test(path.replaceAll(idPlace, '1')) && parsedUrl(url)?.href === url
}

/** How environment variables and flags spell a {@link Route}. */
export const routeSpelling = 'METHOD PATH [ID_FIELD]'

/** The fields, not validated, of a route that is written as `POST /api/subscriptions/unsubscribe subscription_id`. */
export function fieldsOfRoute(text: string): Readonly<Record<keyof Route, string | undefined>> {
  const [method, path, ...rest] = text.trim().split(/\s+/)
  // Superfluous words stay in the field's name, which is refused for its space.
  return { method, path, idField: rest.join(' ') || undefined }
}
