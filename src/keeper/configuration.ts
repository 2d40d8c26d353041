/**
 * What every subscription is to look like, and whose configuration is the newest: this process's own, or that of another,
 * after which this process sends nothing. The store holds no secret: it knows a configuration by a slow hash.
 */
import { randomBytes, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import * as z from 'zod'
import { notificationTypes } from '../notification-types.js'
import type { AssociatedValues, UpdateSubscriptionParametersInput } from '../subscriptions/schemas.js'
import type { KeeperStore } from './keeper-store.js'
import { countSchema, parseStored, type Spec, specKey } from './record.js'
import type { Problems } from './reporter.js'
import type { Users } from './users.js'

const storedConfigurationSchema = z
  .object({
    /** When the configuration was announced, in ms since 1970, or one more than the highest generation known then. */
    generation: countSchema,
    /** Of a rotation: the generation that was deployed. A later deployment is newer than it, whenever it was rotated. */
    deployed: countSchema.optional(),
    salt: z.string(),
    /** Of parameters and headers. */
    hash: z.string(),
    types: z.array(z.enum(notificationTypes)).readonly(),
    callbackUrl: z.string(),
    parameterNames: z.array(z.string()).readonly(),
  })
  .readonly()

/** The newest configuration, as the store holds it. */
export type StoredConfiguration = z.output<typeof storedConfigurationSchema>

/** @returns `undefined` for a text that is no configuration */
export function parseConfiguration(text: string): StoredConfiguration | undefined {
  return parseStored(storedConfigurationSchema, text)
}

export class Configuration {
  readonly spec: Spec
  /** Names the spec in a record. */
  readonly key: string
  /** Parameters and headers, as a create or an update takes them. */
  readonly values: UpdateSubscriptionParametersInput
  /** Names of parameters and headers, in lower case. */
  readonly names: readonly string[]
  #hash: { readonly salt: string; readonly value: Promise<string> } | undefined

  constructor({ types, callbackUrl }: Spec, values: UpdateSubscriptionParametersInput) {
    this.spec = { types: [...types].sort(), callbackUrl }
    this.key = specKey(this.spec)
    this.values = values
    this.names = [...namesOf(values)].sort()
  }

  /** With these values besides, or in place of, those of the same names. */
  with(changes: UpdateSubscriptionParametersInput): Configuration {
    const changed = namesOf(changes)
    const merged = (present: AssociatedValues | undefined, news: AssociatedValues | undefined) => {
      const kept = Object.entries(present ?? {}).filter(([name]) => !changed.has(name.toLowerCase()))
      const all = { ...Object.fromEntries(kept), ...news }
      return Object.keys(all).length > 0 ? all : undefined
    }
    return new Configuration(this.spec, {
      parameters: merged(this.values.parameters, changes.parameters),
      headers: merged(this.values.headers, changes.headers),
    })
  }

  /** Whether the store holds this configuration. */
  async isThat({ callbackUrl, hash, salt, types }: StoredConfiguration): Promise<boolean> {
    return specKey({ types, callbackUrl }) === this.key && (await this.#hashWith(salt)) === hash
  }

  async toStored(
    stamps: Pick<StoredConfiguration, 'generation' | 'deployed' | 'salt'>,
  ): Promise<StoredConfiguration> {
    const { types, callbackUrl } = this.spec
    const hash = await this.#hashWith(stamps.salt)
    return { ...stamps, hash, types, callbackUrl, parameterNames: this.names }
  }

  /** Slow, because a store that leaks must not help to guess a token; so once per salt, which only a new store changes. */
  #hashWith(salt: string): Promise<string> {
    if (this.#hash?.salt !== salt) this.#hash = { salt, value: hashOf(this.values, salt) }
    return this.#hash.value
  }
}

function namesOf({ parameters, headers }: UpdateSubscriptionParametersInput): Set<string> {
  return new Set(Object.keys({ ...parameters, ...headers }).map((name) => name.toLowerCase()))
}

async function hashOf(
  { parameters, headers }: UpdateSubscriptionParametersInput,
  salt: string,
): Promise<string> {
  const sorted = [parameters, headers].map((values) =>
    Object.entries(values ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)),
  )
  if (sorted.every((entries) => entries.length === 0)) return ''
  const hash = await promisify<string, string, number, Buffer>(scrypt)(JSON.stringify(sorted), salt, 32)
  return hash.toString('base64url')
}

const storeKey = 'configuration'

export class NewestConfiguration {
  readonly #store: KeeperStore
  readonly #users: Users
  readonly #problems: Problems
  #own: Configuration
  /** The own configuration, as the store held it when it was the newest; none before the store was first asked. */
  #announced: StoredConfiguration | undefined
  /** The configurations before each rotation that the store does not hold yet. */
  #rotated: readonly Configuration[] = []
  #isSuperseded = false
  #refreshing: Promise<void> | undefined
  /** When the store was last known to hold a configuration; monotonic. */
  #seenSince = Number.NEGATIVE_INFINITY

  constructor(
    own: Configuration,
    { store, users, problems }: { store: KeeperStore; users: Users; problems: Problems },
  ) {
    this.#own = own
    this.#store = store
    this.#users = users
    this.#problems = problems
  }

  /** The configuration of this process. */
  get own(): Configuration {
    return this.#own
  }

  /** The generation of the own configuration; 0 before the store was first asked. */
  get generation(): number {
    return this.#announced?.generation ?? 0
  }

  /** Whether the store holds the own configuration as the newest. */
  get isKnown(): boolean {
    return this.#announced !== undefined && this.#rotated.length === 0
  }

  get isSuperseded(): boolean {
    return this.#isSuperseded
  }

  /** New values for the own configuration, announced at the next {@link NewestConfiguration.refresh}. */
  rotate(values: UpdateSubscriptionParametersInput): void {
    this.#rotated = [...this.#rotated, this.#own]
    this.#own = this.#own.with(values)
  }

  /** Asks the store, and announces the own configuration where this process may. @throws StoreUnavailable, KeyFailure */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#store
      .untilStored(storeKey, () => this.#tryRefresh())
      .then(() => {
        this.#seenSince = performance.now()
      })
      .finally(() => {
        this.#refreshing = undefined
      })
    return this.#refreshing
  }

  /** Resolves when no reading is in progress. */
  async settled(): Promise<void> {
    await this.#refreshing?.catch(() => {})
  }

  /** @returns whether the store holds what this process goes by */
  async #tryRefresh(): Promise<boolean> {
    const own = this.#own
    const announced = this.#announced
    const reading = { copy: announced, isExpected: true }
    const { text, value: stored, isDamaged } = await this.#store.read(storeKey, parseConfiguration, reading)
    // Lost, or older than this process's own; or it cannot be read, and is written again from memory.
    const isBehind = isDamaged || stored === undefined || isOlder(stored, announced)
    if (!isBehind && (await own.isThat(stored))) {
      this.#follow(own, stored)
      return true
    }
    const hasRotated = isBehind
      ? this.#rotated.length > 0 && !this.#isSuperseded
      : await this.#isRotated(stored)
    // Records may have the generation of what is older all the same.
    const isOvertaken = isBehind && (stored?.generation ?? 0) > this.generation
    const mayAnnounce = announced === undefined || hasRotated || isOvertaken
    if (!mayAnnounce && !isBehind) {
      this.#supersede()
      return true
    }
    const next = mayAnnounce ? await successorOf(own, announced, stored) : announced
    if (!(await this.#store.compareAndSet(storeKey, text, JSON.stringify(next)))) return false
    await this.#store.verify(storeKey)
    if (stored === undefined && announced !== undefined) this.#store.reportLoss(this.#seenSince)
    if (mayAnnounce) this.#follow(own, next)
    return own === this.#own
  }

  /** Whether a rotation was called on this configuration: what another process has deployed meanwhile stays the newest. */
  async #isRotated(stored: StoredConfiguration): Promise<boolean> {
    const matches = await Promise.all(this.#rotated.map((before) => before.isThat(stored)))
    return matches.includes(true)
  }

  #follow(configuration: Configuration, stored: StoredConfiguration): void {
    if (configuration !== this.#own) return
    const isNew = this.generation !== stored.generation
    this.#announced = stored
    this.#rotated = []
    this.#isSuperseded = false
    this.#problems.resolve('SUPERSEDED')
    if (isNew) for (const user of this.#users) user.makeDue()
  }

  #supersede(): void {
    this.#isSuperseded = true
    this.#rotated = []
    this.#problems.begin('SUPERSEDED', supersededMessage)
  }
}

/** What the store is to hold when this configuration succeeds the present one. */
function successorOf(
  own: Configuration,
  announced: StoredConfiguration | undefined,
  stored: StoredConfiguration | undefined,
): Promise<StoredConfiguration> {
  const after = [announced, stored].map((each) => (each?.generation ?? 0) + 1)
  const generation = Math.max(Date.now(), ...after)
  const salt = stored?.salt ?? announced?.salt ?? randomBytes(16).toString('base64url')
  const deployed = announced && Math.max(deploymentOf(announced), deploymentOf(stored))
  return own.toStored({ generation, deployed, salt })
}

/** A rotation of what was deployed earlier is older, too. */
function isOlder(stored: StoredConfiguration, announced: StoredConfiguration | undefined): boolean {
  if (announced === undefined) return false
  const laterMs = deploymentOf(stored) - deploymentOf(announced)
  return laterMs === 0 ? stored.generation < announced.generation : laterMs < 0
}

function deploymentOf(stored: StoredConfiguration | undefined): number {
  return stored?.deployed ?? stored?.generation ?? 0
}

const supersededMessage =
  'Another process has a newer configuration (types, callback URL, parameters or headers): this one sends nothing more. ' +
  'Stop this process, or deploy it anew; after a rotation, call `rotateParameters` here, too.'
