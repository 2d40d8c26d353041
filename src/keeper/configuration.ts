/**
 * What each user's subscription must have, and whether another process has a newer configuration. The newest one has the highest
 * generation. The store holds no secret: it identifies a configuration by a slow hash.
 */
import { pbkdf2, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import pLimit from 'p-limit'
import pMemoize from 'p-memoize'
import * as z from 'zod'
import type { AssociatedValues, UpdateSubscriptionParametersInput } from '../subscriptions/schemas.js'
import { type KeeperStore, lossMessage } from './keeper-store.js'
import type { ResolvedOptions } from './options.js'
import type { Processes } from './processes.js'
import type { Problems } from './reporter.js'
import { countSchema, type Spec, specOf } from './rules/record.js'
import type { Users } from './users.js'

const storedSchema = z.object({
  // Begins with the time in milliseconds. A greater number would leave no next one.
  generation: countSchema.min(1).max(2 ** 47),
  salt: z.string(),
  /** The hash of spec, parameters and headers. */
  hash: z.string(),
})
const storeKey = 'configuration'

/** Node.js hashes, looks up hosts and writes files in the same four threads: a start of many keepers must leave some of them. */
const limitHashes = pLimit(2)

export class Configuration {
  readonly spec: Spec
  readonly values: UpdateSubscriptionParametersInput
  /** Names of parameters and headers, in lower case. */
  readonly names: readonly string[]
  /** The newest generation that this process has used, also while another one supersedes it; 0 before the first. */
  generation = 0
  /** Whether another process has a newer configuration: this one sends nothing. */
  isSuperseded = false
  /** The newest generation that this process has read or written. */
  #newest = 0

  constructor(
    { callbackUrl, headers, notificationTypes, parameters }: ResolvedOptions,
    private readonly store: KeeperStore,
    private readonly processes: Processes,
    private readonly users: Users,
    private readonly problems: Problems,
  ) {
    this.values = { parameters, headers }
    this.spec = specOf(notificationTypes, String(callbackUrl))
    const names = Object.keys({ ...parameters, ...headers })
    this.names = names.map((name) => name.toLowerCase()).sort()
  }

  /** Finds out whether this configuration is the newest, or makes it the newest. @throws StoreFailure */
  readonly synchronize = pMemoize(() => this.#synchronize(), { cache: false })

  async #synchronize(): Promise<void> {
    const { generation, isSuperseded, problems, processes } = this
    const written = await this.store.update(storeKey, storedSchema, async (stored, isDamaged) => {
      const found = stored?.generation ?? 0
      // After a loss the store may hold an older configuration than the newest one that this process has seen.
      const isCurrent = found >= this.#newest
      const isOurs = stored !== undefined && (await this.#hashOf(stored.salt)) === stored.hash
      const isStarting = generation === 0
      const mayWriteAgain = !isStarting && !isSuperseded && (!isCurrent || stored === undefined)
      const mayReturn = isSuperseded && processes.areNewerGone
      if (isOurs && isCurrent) this.#becomeNewest(found)
      else if (isStarting || mayWriteAgain || mayReturn) {
        // A starting process has the newest configuration. If every process with a newer one is gone, this one comes back.
        const next = Math.max(found + 1, this.#newest + 1, Date.now())
        if (mayWriteAgain && !isDamaged) problems.reportOnce('STORE', lossMessage, 'loss')
        const salt = randomBytes(16).toString('base64url')
        return { generation: mayWriteAgain ? generation : next, salt, hash: await this.#hashOf(salt) }
      } else {
        if (!isSuperseded) processes.noteNewer()
        this.#newest = Math.max(this.#newest, found)
        this.isSuperseded = true
        problems.begin('SUPERSEDED', newerMessage)
      }
      return undefined
    })
    if (written !== undefined) this.#becomeNewest(written.generation)
  }

  #becomeNewest(generation: number): void {
    const isNew = generation !== this.generation || this.isSuperseded
    this.isSuperseded = false
    this.generation = this.#newest = generation
    this.problems.resolve('SUPERSEDED')
    if (isNew) this.users.markAllDue()
  }

  /** Slow, so that a leaked store does not help to guess a token. Computed once per salt. */
  readonly #hashOf = pMemoize(async (salt: string) => {
    const { headers, parameters } = this.values
    const sorted = (each: AssociatedValues = {}) => Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1))
    const text = JSON.stringify([salt, this.spec, sorted(parameters), sorted(headers)])
    // Not by scrypt, which a Node.js in FIPS mode refuses. The count is OWASP's for this digest.
    const hash = await limitHashes(() => promisify(pbkdf2)(text, salt, 210_000, 32, 'sha512'))
    return hash.toString('base64url')
  })
}

const newerMessage =
  'Another process, or another keeper with this `name`, has a newer configuration (types, callback URL, parameters or ' +
  'headers): this process sends nothing more. Stop it, or start it with the newer configuration: a restart with the old ' +
  'configuration moves every user back. Give each roster a `name` of its own.'
