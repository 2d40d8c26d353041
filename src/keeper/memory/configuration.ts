/**
 * The wanted subscription of every user, and whether it is the newest configuration, which has the highest generation in the
 * store. The store has no secret: it identifies a configuration by a slow hash.
 */
import { randomBytes, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import * as z from 'zod'
import { singleFlight } from '../../shared/calls.js'
import type { AssociatedValues, UpdateSubscriptionParametersInput } from '../../subscriptions/schemas.js'
import type { Schedule } from '../loop/schedule.js'
import type { Problems } from '../reporter.js'
import { countSchema, parseWith, type Spec, specOf } from '../rules/record.js'
import { longAgo, now } from '../timing.js'
import type { SubscriptionKeeperOptions } from '../types.js'
import { type KeeperStore, lossMessage } from './keeper-store.js'
import { lifeMs, type Processes } from './processes.js'

const storedSchema = z.object({
  generation: countSchema.min(1),
  salt: z.string(),
  /** Of spec, parameters and headers. */
  hash: z.string(),
})
type StoredConfiguration = Readonly<z.output<typeof storedSchema>>

const storeKey = 'configuration'

export interface ConfigurationParts {
  readonly store: KeeperStore
  readonly problems: Problems
  readonly processes: Processes
  readonly schedule: Schedule
}

/** What this process sends, and whether it may. */
export interface ConfigurationState {
  /** Parameters and headers. */
  readonly values: UpdateSubscriptionParametersInput
  /** `undefined` before the first synchronization, and after a rotation until the next. */
  readonly generation: number | undefined
  /** Whether another process has a newer configuration: this one sends nothing. */
  readonly isSuperseded: boolean
  /** Whether the store held no configuration when this process first read it. */
  readonly wasMissing: boolean
}

export class Configuration {
  readonly spec: Spec
  readonly #parts: ConfigurationParts
  #state: ConfigurationState
  #hash: { readonly of: string; readonly value: Promise<string> } | undefined
  /** The newest generation that this process has used; 0 before the first. */
  #highest = 0
  #supersededSince = longAgo
  /** The highest generation that only a newer release can read. */
  #foreignGeneration = 0

  constructor(options: SubscriptionKeeperOptions, parts: ConfigurationParts) {
    const { callbackUrl, headers, notificationTypes, parameters } = options
    const values = { parameters, headers }
    this.spec = specOf(notificationTypes, String(callbackUrl))
    this.#parts = parts
    this.#state = { values, generation: undefined, isSuperseded: false, wasMissing: false }
  }

  /** The generation of this process, also while another one supersedes it. */
  get generation(): number {
    return this.#state.generation ?? this.#highest
  }

  get state(): ConfigurationState {
    return this.#state
  }

  /** The values after a rotation: other values stay. */
  merged({ parameters, headers }: UpdateSubscriptionParametersInput): UpdateSubscriptionParametersInput {
    const changed = new Set(namesOf({ parameters, headers }))
    const merge = (present: AssociatedValues | undefined, changes: AssociatedValues | undefined) => {
      const kept = Object.entries(present ?? {}).filter(([name]) => !changed.has(name.toLowerCase()))
      const all = { ...Object.fromEntries(kept), ...changes }
      return Object.keys(all).length > 0 ? all : undefined
    }
    const { values } = this.#state
    return { parameters: merge(values.parameters, parameters), headers: merge(values.headers, headers) }
  }

  /** The next synchronization makes the values a configuration. */
  rotate(values: UpdateSubscriptionParametersInput): void {
    this.#state = { ...this.#state, values, generation: undefined }
  }

  /** A newer release has written something. @returns whether that supersedes this process */
  meetForeign(key: string, generation: number): boolean {
    if (generation <= this.generation) return false
    this.#foreignGeneration = Math.max(this.#foreignGeneration, generation)
    this.#supersede(foreignMessage(key))
    return true
  }

  /** Checks whether this configuration is the newest, or makes it the newest. @throws StoreFailure, KeyFailure */
  readonly synchronize = singleFlight(() =>
    this.#parts.store.untilStored(storeKey, () => this.#synchronize()),
  )

  /** @returns whether the store has this process' configuration */
  async #synchronize(): Promise<boolean> {
    const { problems, processes, store } = this.#parts
    const { generation: present, isSuperseded, values } = this.#state
    const parsed = await store.read(storeKey, (stored) => parseWith(storedSchema, stored))
    const { text, value: stored, foreignGeneration = 0 } = parsed
    if (this.meetForeign(storeKey, Math.max(foreignGeneration, this.#foreignGeneration))) return true
    const mayReturn =
      isSuperseded && now() - this.#supersededSince >= lifeMs && !processes.hasNewer(this.#highest)
    const mine = mayReturn ? undefined : present
    const isOurs = stored !== undefined && (await this.#hashOf(values, stored.salt)) === stored.hash
    if (isOurs && stored.generation >= (mine ?? 0)) {
      this.#follow(values, stored.generation)
      return true
    }
    // A starting process has the newest configuration; a rotation replaces the configuration before it. If every process with a
    // newer one is gone, this one comes back.
    const isOlder = stored === undefined || stored.generation < (mine ?? this.#highest + 1)
    if (this.#highest > 0 && !isOlder && !mayReturn) {
      this.#supersede(newerMessage)
      return true
    }
    const generation = mine ?? Math.max((stored?.generation ?? 0) + 1, this.#highest + 1, Date.now())
    const salt = randomBytes(16).toString('base64url')
    const written: StoredConfiguration = { generation, salt, hash: await this.#hashOf(values, salt) }
    if (!(await store.compareAndSet(storeKey, text, JSON.stringify(written)))) return false
    const isLost = text === undefined || stored !== undefined
    if (mine !== undefined && isLost) problems.reportOnce('STORE', lossMessage, 'loss')
    if (text === undefined && this.#highest === 0) this.#state = { ...this.#state, wasMissing: true }
    this.#follow(values, generation)
    return this.#state.values === values
  }

  #follow(values: UpdateSubscriptionParametersInput, generation: number): void {
    const { problems, schedule } = this.#parts
    const before = this.#state
    if (values !== before.values) return
    this.#state = { ...before, generation, isSuperseded: false }
    this.#highest = generation
    problems.resolve('SUPERSEDED')
    if (generation !== before.generation || before.isSuperseded) schedule.markAllDue()
  }

  #supersede(message: string): void {
    if (!this.#state.isSuperseded) this.#supersededSince = now()
    this.#state = { ...this.#state, isSuperseded: true }
    this.#parts.problems.begin('SUPERSEDED', message)
  }

  /** Slow, so that a leaked store does not help to guess a token; so computed once per salt and values. */
  #hashOf({ headers, parameters }: UpdateSubscriptionParametersInput, salt: string): Promise<string> {
    const sorted = (each: AssociatedValues = {}) => Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1))
    const of = JSON.stringify([salt, this.spec, sorted(parameters), sorted(headers)])
    if (this.#hash?.of !== of) {
      const hash = promisify<string, string, number, Buffer>(scrypt)(of, salt, 32)
      this.#hash = { of, value: hash.then((bytes) => bytes.toString('base64url')) }
    }
    return this.#hash.value
  }
}

/** Names of parameters and headers, in lower case. */
export function namesOf({ parameters, headers }: UpdateSubscriptionParametersInput): readonly string[] {
  const names = Object.keys({ ...parameters, ...headers })
  return names.map((name) => name.toLowerCase()).sort()
}

export const supersededMessage =
  'Another process runs a newer configuration: it subscribes this user, and this process sends nothing.'
const newerMessage =
  'Another process has a newer configuration (types, callback URL, parameters or headers): this one sends nothing more. ' +
  'Stop this process, or deploy it anew; after a rotation, call `rotateParameters` here, too.'
const foreignMessage = (key: string) =>
  `A newer release has written "${key}" in a format that this process does not know: this one sends nothing more. ` +
  'Run the newer release; to go back to this one, delete the keys of the keeper.'
