/** Reads the options of a client from environment variables; its errors name the variables. */
import type { CredentialsEncoding } from '../auth/token-request.js'
import { ConfigurationError, type Issue } from '../errors.js'
import { messageOf } from '../shared/text.js'
import { formatIssues } from '../shared/validation.js'
import { certificatesIn, type NotificationClientOptions } from './options.js'

type Environment = Readonly<Record<string, string | undefined>>

interface Variable {
  /** The option that the variable sets. */
  readonly option: string
  /** What the variable must be set to, if it must be set. */
  readonly missing?: string
}

const variables: Readonly<Record<string, Variable>> = {
  NOTIFICATION_BASE_URL: { option: 'baseUrl', missing: 'the base address of the notification service' },
  NOTIFICATION_AUTH_URL: { option: 'auth.authUrl', missing: 'the base address of the authorization server' },
  NOTIFICATION_DOMAIN: { option: 'auth.domain', missing: "the tenant's name" },
  NOTIFICATION_CLIENT_ID: { option: 'auth.clientId', missing: 'the client ID' },
  NOTIFICATION_CLIENT_SECRET: { option: 'auth.clientSecret', missing: 'the client secret' },
  NOTIFICATION_SCOPE: { option: 'auth.scope' },
  NOTIFICATION_CREDENTIALS_ENCODING: { option: 'auth.credentialsEncoding' },
  NOTIFICATION_CA_FILE: { option: 'ca' },
}

/**
 * Makes a client from the environment.
 *
 * @param options - every option that the environment does not set
 * @throws `ConfigurationError` that names every variable that is missing, or whose value cannot work
 */
export function fromEnvironment<Client>(
  make: (options: NotificationClientOptions) => Client,
  options: Omit<NotificationClientOptions, 'baseUrl' | 'auth'> | undefined,
  env: Environment,
): Client {
  const misplaced = misplacedIn(options)
  if (misplaced.length > 0) throw unusable(misplaced)
  // JavaScript callers may pass anything: in a value that is no object every variable is missing.
  const given: Environment = Object(env)
  const problems = missingFrom(given)
  const { ca = certificatesOf(given.NOTIFICATION_CA_FILE, problems), ...rest } = options ?? {}
  try {
    const client = make({ ...rest, ca, ...serverAndCredentials(given) })
    if (problems.length === 0) return client
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    // A missing variable has its issue already: the empty text in the options would add a second one.
    const isSaid = ({ path }: Issue) => problems.some((problem) => problem.path[0] === path[0])
    const found = error.issues.map((issue) => namedByVariable(issue, options?.ca === undefined))
    problems.push(...found.filter((issue) => !isSaid(issue)))
  }
  throw unusable(problems)
}

/** Misplaced arguments: the environment as the first argument, or options that the environment sets. */
function misplacedIn(options: unknown): Issue[] {
  const given: Readonly<Record<string, unknown>> = Object(options)
  if (options === process.env || Object.keys(given).some((name) => name.startsWith('NOTIFICATION_'))) {
    const message =
      'the first argument is the environment, which is the second one since 0.2: ' +
      'leave it out, or write `NotificationClient.fromEnv({}, env)`'
    return [{ path: [], message }]
  }
  const message = 'is read from the environment: leave it out here, or use `new NotificationClient`'
  return ['baseUrl', 'auth']
    .filter((name) => given[name] !== undefined)
    .map((name) => ({ path: [name], message }))
}

/** The variables that a client needs and that are not set. */
export function missingFrom(env: Environment): Issue[] {
  return Object.entries(variables).flatMap(([name, { missing }]) =>
    missing === undefined || env[name] ? [] : [{ path: [name], message: `is missing: set it to ${missing}` }],
  )
}

/** An empty variable counts as one that is not set. */
function serverAndCredentials(env: Environment): Pick<NotificationClientOptions, 'baseUrl' | 'auth'> {
  return {
    baseUrl: env.NOTIFICATION_BASE_URL ?? '',
    auth: {
      authUrl: env.NOTIFICATION_AUTH_URL ?? '',
      domain: env.NOTIFICATION_DOMAIN ?? '',
      clientId: env.NOTIFICATION_CLIENT_ID ?? '',
      clientSecret: env.NOTIFICATION_CLIENT_SECRET ?? '',
      scope: env.NOTIFICATION_SCOPE || undefined,
      // Checked with the other options, which name the encodings that there are.
      credentialsEncoding: (env.NOTIFICATION_CREDENTIALS_ENCODING || undefined) as
        | CredentialsEncoding
        | undefined,
    },
  }
}

/** @param problems - gets one more if the file cannot be used */
function certificatesOf(file: string | undefined, problems: Issue[]): string | undefined {
  if (!file) return undefined
  const refuse = (message: string) => problems.push({ path: ['NOTIFICATION_CA_FILE'], message })
  try {
    // Loaded here: importing the package alone does not pay for `node:fs`.
    const text = process.getBuiltinModule('node:fs').readFileSync(file, 'utf8')
    if (certificatesIn(text).length > 0) return text
    refuse('names a file that holds no PEM certificate (-----BEGIN CERTIFICATE-----)')
  } catch (error) {
    refuse(`names a file that cannot be read (${messageOf(error)})`)
  }
  return undefined
}

/** @param isCaRead - whether `ca` comes from the environment, too */
function namedByVariable({ path, message }: Issue, isCaRead: boolean): Issue {
  const option = path.join('.')
  const name = Object.keys(variables).find((each) => variables[each]?.option === option)
  return name === undefined || (option === 'ca' && !isCaRead) ? { path, message } : { path: [name], message }
}

function unusable(issues: readonly Issue[]): ConfigurationError {
  const message = `NotificationClient cannot be made from this environment: ${formatIssues(issues)}.`
  return new ConfigurationError(message, { issues })
}
