/** Methods and paths of unsubscribe and update, which the service's interface document leaves open. */
import * as z from 'zod'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const formats = ['form', 'json'] as const

/** Every endpoint of the service, with the place of a variable in braces (docs/service.md, Endpoints). */
export const endpoints = {
  token: { method: 'POST', path: '/auth/realms/{domain}/protocol/openid-connect/token' },
  create: { method: 'POST', path: '/api/subscriptions' },
  update: { method: 'PUT', path: '/api/subscriptions/{subscriptionId}' },
  unsubscribe: { method: 'DELETE', path: '/api/subscriptions/{subscriptionId}' },
} as const

/** How one operation is called. The subscription's id is in `path`, or in the body under `idField`. */
export interface Route {
  /** The HTTP method. Default: see {@link Routes}. */
  readonly method?: (typeof methods)[number] | undefined
  /**
   * Begins with `/`, is added to `baseUrl`, and may have a query. Holds `{subscriptionId}` once for the id, unless there
   * is an `idField`. Default: see {@link Routes}.
   */
  readonly path?: string | undefined
  /** The field of the body that holds the id, such as `subscription_id`. Default: none, the id is in `path`. */
  readonly idField?: string | undefined
  /** How a body is written: as a form, or as a JSON object in which the id is a number. Default: `'form'`. */
  readonly format?: (typeof formats)[number] | undefined
}

/**
 * The operations whose method and path are not part of the service's interface document (docs/service.md, Endpoints).
 * The defaults come from the service's public developer pages.
 */
export interface Routes {
  /** How a subscription is ended. Default: `DELETE /api/subscriptions/{subscriptionId}`. */
  readonly unsubscribe?: Route | undefined
  /** How parameters are changed. Default: `PUT /api/subscriptions/{subscriptionId}`. */
  readonly update?: Route | undefined
}

/** A route with its defaults filled in. */
export type ResolvedRoute = ReturnType<typeof resolvedRoute>

export type Operation = keyof Routes

/** In a path, the place of the id. */
export const idPlace = '{subscriptionId}'

/** @param route - valid by {@link routeSchema} */
export function resolvedRoute(operation: Operation, route: Route = {}) {
  const usual = endpoints[operation]
  const { format = 'form', idField, method = usual.method, path = usual.path } = route
  return { method, path, idField, format }
}

/** The schema of {@link Routes}. */
export function routesSchema() {
  return z.strictObject({
    unsubscribe: routeSchema('unsubscribe').optional(),
    update: routeSchema('update').optional(),
  })
}

/** The schema of one {@link Route}: its issues name the missing or superfluous part. */
export function routeSchema(operation: Operation): z.ZodType<Route> {
  return z
    .strictObject({
      method: z.enum(methods, `must be ${methods.join(', ')}, in capital letters`).optional(),
      path: z
        .string()
        .regex(/^\/[\x21-\x7e]*$/, {
          abort: true,
          error: 'must begin with / and hold visible ASCII characters only',
        })
        .regex(/^[^#]*$/, 'must not contain a fragment (#…): it is never sent to a server')
        .refine((path) => !/[{}]/.test(path.replaceAll(idPlace, '')), {
          abort: true,
          error: `has braces that are not ${idPlace}, the place of the id`,
        })
        .refine(isSentAsWritten, {
          error: 'must be written as URLs are: `..`, quotes and the like would be sent as something else',
        })
        .optional(),
      idField: z
        .string()
        .regex(/^[\x21-\x7e]+$/, 'must be visible ASCII characters')
        .optional(),
      format: z.enum(formats).optional(),
    })
    .superRefine((route, context) => {
      const refuse = (part: keyof Route, message: string) =>
        context.addIssue({ code: 'custom', path: [part], message })
      const { idField, method, path } = resolvedRoute(operation, route)
      const places = path.split(idPlace).length - 1
      const hasField = idField !== undefined
      const hasBody = operation === 'update' || hasField
      if (places > 1) refuse('path', `must contain ${idPlace} once: the id has one place`)
      if (places === 0 && !hasField)
        refuse(
          'path',
          `must contain ${idPlace}, or \`idField\` must name the field of the body that holds the id`,
        )
      if (places > 0 && hasField)
        refuse('idField', `is a second place for the id: leave it out, or give a \`path\` without ${idPlace}`)
      if (hasBody && method === 'GET')
        refuse('method', 'cannot be GET, which has no body: the body holds the id or the changed values')
      if (!hasBody && route.format !== undefined)
        refuse('format', 'is for a body, which this route has only with an `idField`')
    })
}

function isSentAsWritten(path: string): boolean {
  const url = `https://host.example${path.replaceAll(idPlace, '1')}`
  return new URL(url).href === url
}

/** How environment variables and flags spell a {@link Route}. */
export const routeSpelling = 'METHOD PATH [ID_FIELD] [form|json]'

/** The unchecked parts of a route that is written as `POST /api/subscriptions/unsubscribe subscription_id json`. */
export function partsOfRoute(text: string): Readonly<Record<keyof Route, string | undefined>> {
  const [method, path, ...rest] = text.trim().split(/\s+/)
  // A path with the place of the id leaves no use for a field.
  const hasPlace = path?.includes(idPlace) === true
  const isLastFormat = hasPlace || rest.length > 1 || formats.some((name) => name === rest[0])
  const format = isLastFormat ? rest.pop() : undefined
  // Superfluous words stay in the field's name, which is refused for its space.
  return { method, path, idField: rest.length > 0 ? rest.join(' ') : undefined, format }
}
