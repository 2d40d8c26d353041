/** What every subscription is to look like, and how a configuration is told from another without storing a secret. */
import { createHash, randomBytes, scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import * as z from 'zod'
import type { NotificationType } from '../notification-types.js'
import type { AssociatedValues } from '../subscriptions/associated-values.js'
import type { UpdateSubscriptionParametersInput } from '../subscriptions/update-input.js'
import { type Instant, pastStamp, presentInstant } from './timing.js'

/** What can exist once for a user: types and a callback URL. */
export interface Target {
  readonly types: readonly NotificationType[]
  readonly callbackUrl: string
}

export const targetSchema = z.object({
  types: z.array(z.enum(['behavioral', 'call-score', 'conversation-ai'])).readonly(),
  callbackUrl: z.string(),
})

/** What the store says of the newest configuration. Parameters stand there as a slow salted hash only. */
export const generationSchema = z.object({
  generation: z.int(),
  /** All that any record can refer to, by number: see `numberOf`. */
  targets: z.record(z.string(), targetSchema),
  /** Which of them is the newest configuration's. */
  target: z.int(),
  /** When the process that announced it was given it; wall clock. */
  givenAt: z.number(),
  /** Of every store that was begun anew another one: generations that differ in it have nothing to do with each other. */
  salt: z.string(),
  hash: z.string(),
  /** Names of parameters and headers, in lower case, by generation. */
  names: z.record(z.string(), z.array(z.string())),
})

export type StoredGeneration = z.output<typeof generationSchema>

/** So many generations back it is remembered which names their parameters had. */
const rememberedGenerations = 50

export class Configuration {
  /** Its types are sorted. */
  readonly target: Target
  readonly #given: Instant
  #values: UpdateSubscriptionParametersInput
  #hash: { readonly salt: string; readonly value: Promise<string> } | undefined

  constructor(target: Target, values: UpdateSubscriptionParametersInput, given = presentInstant()) {
    this.target = { types: [...target.types].sort(), callbackUrl: target.callbackUrl }
    this.#given = given
    this.#values = values
  }

  /** Parameters and headers, as a create or an update takes them. */
  get values(): UpdateSubscriptionParametersInput {
    return this.#values
  }

  get names(): string[] {
    return Object.keys({ ...this.#values.parameters, ...this.#values.headers }).map((name) =>
      name.toLowerCase(),
    )
  }

  /** With these values besides, or in place of, those of the same names. */
  with({ parameters, headers }: UpdateSubscriptionParametersInput): Configuration {
    const given = new Set(Object.keys({ ...parameters, ...headers }).map((name) => name.toLowerCase()))
    const merged = (present: AssociatedValues | undefined, changes: AssociatedValues | undefined) => {
      const kept = Object.entries(present ?? {}).filter(([name]) => !given.has(name.toLowerCase()))
      const all = { ...Object.fromEntries(kept), ...changes }
      return Object.keys(all).length > 0 ? all : undefined
    }
    const values = {
      parameters: merged(this.#values.parameters, parameters),
      headers: merged(this.#values.headers, headers),
    }
    return new Configuration(this.target, values, this.#given)
  }

  /**
   * Whether the newest configuration in the store was given to its process after this one: two that are given while
   * the store fails may come to it in any order. New values for an old configuration do not make it younger.
   */
  isOlderThan(stored: StoredGeneration): boolean {
    return (this.#pastStampOf(stored) ?? 0) > this.#given.at
  }

  /** A stamp of the future was made by a wrong clock. A jump of this process's own clock since makes none. */
  #pastStampOf({ givenAt }: StoredGeneration): number | undefined {
    return pastStamp(givenAt, this.#given.at + performance.now() - this.#given.since)
  }

  /** Whether the newest configuration in the store is this one. */
  async isThat(stored: StoredGeneration): Promise<boolean> {
    if (numberOf(this.target) !== stored.target) return false
    return (await this.#hashWith(stored.salt)) === stored.hash
  }

  /** What the store is to say when this process was given the configuration anew that stands there already. */
  confirming<T extends StoredGeneration>(stored: T): T {
    return { ...stored, givenAt: this.#givenAtAfter(stored) }
  }

  /** What the store is to say when this configuration succeeds `earlier`. */
  async succeeding(earlier: StoredGeneration | undefined): Promise<StoredGeneration> {
    const salt = earlier?.salt ?? randomBytes(16).toString('base64url')
    const generation = (earlier?.generation ?? 0) + 1
    const target = numberOf(this.target)
    const names = Object.entries(earlier?.names ?? {}).slice(-rememberedGenerations)
    return {
      generation,
      targets: { ...earlier?.targets, [target]: this.target },
      target,
      givenAt: this.#givenAtAfter(earlier),
      salt,
      hash: await this.#hashWith(salt),
      names: { ...Object.fromEntries(names), [generation]: this.names },
    }
  }

  #givenAtAfter(earlier: StoredGeneration | undefined): number {
    return Math.max(this.#given.at, (earlier && this.#pastStampOf(earlier)) ?? 0)
  }

  /** Slow, because names in the store must not help to guess a token. Once for each salt, which changes with the store. */
  #hashWith(salt: string): Promise<string> {
    if (this.#hash?.salt !== salt) this.#hash = { salt, value: hashOf(this.#values, salt) }
    return this.#hash.value
  }
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

/**
 * The number by which records refer to a target. It follows from the target, so that it means the same in every store:
 * what a process knows of one that was lost can be told to the process that began the next. 31 bits, which the engine
 * keeps in place: there is one in memory for each user.
 */
function numberOf({ types, callbackUrl }: Target): number {
  return (
    createHash('sha256')
      .update(JSON.stringify([types, callbackUrl]))
      .digest()
      .readUInt32BE() >>> 1
  )
}

/** Whether subscriptions of both cannot exist side by side. */
export function areInEachOthersWay(one: Target, other: Target): boolean {
  return one.callbackUrl === other.callbackUrl && one.types.some((type) => other.types.includes(type))
}

/** Whether a subscription of `generation` may have a parameter that the newest does not know. An update keeps it. */
export function hasSurplus(stored: StoredGeneration, generation: number): boolean {
  const wanted = new Set(stored.names[stored.generation])
  return Object.entries(stored.names).some(
    ([each, names]) => Number(each) >= generation && names.some((name) => !wanted.has(name)),
  )
}
