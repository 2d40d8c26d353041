/** The head of the records in the store: the newest configuration, who writes the records, and how many chunks there are. */
import * as z from 'zod'
import { parseJson } from '../shared/parse-json.js'
import { generationSchema, type StoredGeneration, type Target } from './configuration.js'
import { leftoverSchema } from './handover.js'
import type { StoreAccess } from './store-access.js'

const headSchema = generationSchema.extend({
  version: z.literal(1),
  /** Who writes the chunks: changed by every process that takes over. */
  epoch: z.string(),
  /** Whether that process has ended cleanly: everything it knew is written, and no call of it is unanswered. */
  isClosed: z.boolean(),
  chunks: z.int().nonnegative(),
  /** What processes have learnt that were not at work any more. */
  leftovers: z.array(leftoverSchema),
})

export type Head = z.output<typeof headSchema>

export class StoredHead {
  readonly #store: StoreAccess
  #present: Head | undefined
  #text: string | undefined
  #writes: Promise<unknown> = Promise.resolve()
  #targets: Readonly<Record<string, Target>> = {}

  constructor(store: StoreAccess) {
    this.#store = store
  }

  /** As it was when it was read or written last. */
  get present(): Head | undefined {
    return this.#present
  }

  /** All targets that this process has ever read of: its records may be older than what is in the store. */
  get targets(): Readonly<Record<string, Target>> {
    return this.#targets
  }

  /** @throws StoreFailure, also for a head that this version cannot read */
  async read(): Promise<Head | undefined> {
    const text = await this.#store.readOrProveEmpty('head')
    if (text === undefined) this.#set(undefined, undefined)
    else if (text !== this.#text) {
      const parsed = headSchema.safeParse(parseJson(text))
      if (!parsed.success) throw this.#store.misread('head')
      this.#set(parsed.data, text)
    }
    this.#store.understood()
    return this.#present
  }

  /**
   * Changes the head if nobody else has since it was read.
   *
   * @returns false if somebody has: read it again
   * @throws StoreFailure
   */
  change(change: (head: Head | undefined) => Head): Promise<boolean> {
    const write = this.#writes.then(async () => {
      const head = change(this.#present)
      const text = JSON.stringify(head)
      if (text === this.#text) return true
      if (!(await this.#store.replace('head', this.#text, text))) return false
      // Where a comparison was made, another process may have announced a generation since.
      if (!this.#store.canCompare) await this.#store.verify('head', text)
      this.#set(head, text)
      return true
    })
    this.#writes = write.catch(() => {})
    return write
  }

  /** Takes note of a new generation. @returns false if the head has changed meanwhile. */
  announce(generation: StoredGeneration): Promise<boolean> {
    return this.change((head) => ({
      // First, because a generation that was found in the store is a whole head: one of an earlier time.
      ...generation,
      version: 1,
      targets: { ...head?.targets, ...generation.targets },
      epoch: head?.epoch ?? '',
      isClosed: head?.isClosed ?? true,
      chunks: head?.chunks ?? 0,
      leftovers: head?.leftovers ?? [],
    }))
  }

  #set(head: Head | undefined, text: string | undefined): void {
    this.#present = head
    this.#text = text
    this.#targets = { ...this.#targets, ...head?.targets }
  }
}
