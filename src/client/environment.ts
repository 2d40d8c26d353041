/** Reads the options of a client from environment variables; its errors name the variables. */
import type { Auth } from '../auth/credentials.js'
import { ConfigurationError, type Issue } from '../errors.js'
import { certificatesIn } from '../shared/certificates.js'
import { spellingProblem } from '../shared/mistakes.js'
import { fieldsOfRoute, type Route, type RouteName, routeSchema, routeSpelling } from '../shared/routes.js'
import { messageOf } from '../shared/text.js'
import { configurationError, formatIssues, issuesOf, ownMessages } from '../shared/validation.js'
import type { NotificationClientOptions } from './options.js'

export type Environment = Readonly<Record<string, string | undefined>>

const clientVariables = {
  NOTIFICATION_AUTH_URL: ['auth.authUrl', 'the base address of the authorization server'],
  NOTIFICATION_DOMAIN: ['auth.domain', "the tenant's name"],
  NOTIFICATION_CLIENT_ID: ['auth.clientId', 'the client ID'],
  NOTIFICATION_CLIENT_SECRET: ['auth.clientSecret', 'the client secret'],
  NOTIFICATION_SCOPE: ['auth.scope'],
  NOTIFICATION_CLIENT_AUTHENTICATION: ['auth.clientAuthentication'],
  NOTIFICATION_CREDENTIALS_ENCODING: ['auth.credentialsEncoding'],
} as const

const basicVariables = {
  NOTIFICATION_USERNAME: ['auth.username', 'the user name'],
  NOTIFICATION_PASSWORD: ['auth.password', 'the password'],
} as const

/** The option of each variable; for a required variable also what to set it to. */
const variables: Readonly<Record<string, readonly [option: string, missing?: string]>> = {
  NOTIFICATION_BASE_URL: ['baseUrl', 'the base address of the notification service'],
  ...clientVariables,
  ...basicVariables,
  NOTIFICATION_CA_FILE: ['ca'],
}

/** The variable of a route, written as {@link routeSpelling}. */
export function routeVariable(name: RouteName): string {
  return `NOTIFICATION_${name.toUpperCase()}_ROUTE`
}

/** Whether the environment has a user name or a password, instead of client credentials. */
export function isBasic(env: Environment): boolean {
  return Boolean(env.NOTIFICATION_USERNAME || env.NOTIFICATION_PASSWORD)
}

/** @param options - replace their variables @throws `ConfigurationError` that names every unusable variable */
export function fromEnvironment<Client>(
  make: (options: NotificationClientOptions) => Client,
  options: Omit<NotificationClientOptions, 'baseUrl' | 'auth'> | undefined,
  env: Environment,
): Client {
  const problems = [...missingFrom(env), ...contradictionsIn(env), ...misspelledIn(env)]
  const { ca = certificatesOf(env.NOTIFICATION_CA_FILE, problems), ...rest } = options ?? {}
  const routes = {
    unsubscribe: rest.routes?.unsubscribe ?? routeOf('unsubscribe', env, problems),
    update: rest.routes?.update ?? routeOf('update', env, problems),
  }
  try {
    const client = make({
      baseUrl: env.NOTIFICATION_BASE_URL ?? '',
      auth: authOf(env),
      ...rest,
      ca,
      routes: { ...rest.routes, ...routes },
    })
    if (problems.length === 0) return client
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    // A missing variable already has an issue: its empty text in the options would add a second one.
    const isKnown = ({ path }: Issue) => problems.some((problem) => problem.path[0] === path[0])
    const found = error.issues.map((issue) => namedByVariable(issue, options?.ca === undefined))
    problems.push(...found.filter((issue) => !isKnown(issue)))
  }
  throw unusable(problems)
}

/** The required variables that are not set. An empty variable counts as not set. */
export function missingFrom(env: Environment): Issue[] {
  const ofOtherKind: object = isBasic(env) ? clientVariables : basicVariables
  return Object.entries(variables).flatMap(([name, [, missing]]) =>
    missing === undefined || name in ofOtherKind || env[name]
      ? []
      : [{ path: [name], message: `is missing: set it to ${missing}` }],
  )
}

/** Variables of client credentials beside a user name or password. */
function contradictionsIn(env: Environment): Issue[] {
  const others = Object.keys(clientVariables).filter((name) => env[name])
  if (!isBasic(env) || others.length === 0) return []
  const name = env.NOTIFICATION_USERNAME ? 'NOTIFICATION_USERNAME' : 'NOTIFICATION_PASSWORD'
  return [{ path: [name], message: `is set beside ${others.join(', ')}: set one kind of credentials only` }]
}

function misspelledIn(env: Environment): Issue[] {
  const names = [...Object.keys(variables), routeVariable('unsubscribe'), routeVariable('update')]
  return names.flatMap((name) => {
    const value = env[name] ?? ''
    // A route, which may have spaces around it, is not in `variables`.
    const hasSpace = value.trim() !== value && name in variables
    const message = spellingProblem(value) ?? (hasSpace ? 'must not begin or end with a space' : undefined)
    return message === undefined ? [] : { path: [name], message }
  })
}

/** The credentials as the variables have them. The client validates them with the other options. */
function authOf(env: Environment): Auth {
  const own = Object.entries(isBasic(env) ? basicVariables : clientVariables)
  const fields = own.map(([name, [option]]) => [option.replace('auth.', ''), env[name] || undefined])
  return Object.fromEntries(fields)
}

/** @param problems - gets one more if the text is no route */
function routeOf(name: RouteName, env: Environment, problems: Issue[]): Route | undefined {
  const variable = routeVariable(name)
  const text = env[variable]
  if (!text) return undefined
  const result = routeSchema(name).safeParse(fieldsOfRoute(text), ownMessages)
  if (result.success) return result.data
  const message = `must be written ${routeSpelling}: ${formatIssues(issuesOf(result.error))}`
  problems.push({ path: [variable], message })
  return undefined
}

/** @param problems - gets one more if the file cannot be used */
function certificatesOf(file: string | undefined, problems: Issue[]): string | undefined {
  if (!file) return undefined
  const add = (message: string) => problems.push({ path: ['NOTIFICATION_CA_FILE'], message })
  try {
    // Loaded here, so that importing the package does not load `node:fs`.
    const text = process.getBuiltinModule('node:fs').readFileSync(file, 'utf8')
    if (certificatesIn(text).length > 0) return text
    add('names a file that holds no PEM certificate (-----BEGIN CERTIFICATE-----)')
  } catch (error) {
    add(`names a file that cannot be read (${messageOf(error)})`)
  }
  return undefined
}

/** @param isCaRead - whether `ca` comes from the environment, too */
function namedByVariable({ path, message }: Issue, isCaRead: boolean): Issue {
  const option = path.join('.')
  const [name] = Object.entries(variables).find(([, [each]]) => each === option) ?? []
  return name === undefined || (option === 'ca' && !isCaRead) ? { path, message } : { path: [name], message }
}

const unusable = configurationError(
  'NotificationClient cannot be made from this environment (`node --env-file=.env` reads a file)',
)
