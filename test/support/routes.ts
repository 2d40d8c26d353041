/** Where the service is called, from the place that says so: a changed default changes every test with it. */
import { endpoints, idPlace } from '../../src/shared/routes.js'

export const createPath = endpoints.create.path

export function tokenPath(domain = 'acme'): string {
  return endpoints.token.path.replace('{domain}', encodeURIComponent(domain))
}

/** Method and path of an update or unsubscribe. */
export function routeOf(operation: 'update' | 'unsubscribe', id: number): { method: string; path: string } {
  const { method, path } = endpoints[operation]
  return { method, path: path.replace(idPlace, String(id)) }
}
