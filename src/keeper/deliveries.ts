/** Deliveries prove known subscriptions. Deliveries of unknown subscriptions are a `STRAY`. */
import type { ResolvedOptions } from './options.js'
import type { Problems } from './reporter.js'
import { deliveryLagMs, jitter, minute, now } from './timing.js'
import type { Users } from './users.js'

/** An unknown subscription is forgotten after this time without a delivery. */
const memoryMs = 60 * minute
/** The most ids that are remembered: more ids are forged. */
const maxUnknown = 1_000

export class Deliveries {
  readonly #unknown = new Map<number, { firstSince: number; lastSince: number }>()

  constructor(
    private readonly options: Pick<ResolvedOptions, 'reportStrays' | 'sweepIntervalMs'>,
    private readonly users: Users,
    private readonly problems: Problems,
  ) {}

  /** Records a delivery at almost no cost: the queue does the rest. */
  observe(id: number, isWatching: boolean): void {
    const { reportStrays, sweepIntervalMs } = this.options
    const user = this.users.byId.get(id)
    if (user === undefined) {
      // The command line's `check` delivers with the id 0, which no subscription has.
      const mayBeStray = Number.isSafeInteger(id) && id !== 0 && !this.users.byId.has(id)
      if (!isWatching || !reportStrays || !mayBeStray) return
      const unknown = this.#unknown.get(id) ?? { firstSince: now(), lastSince: now() }
      unknown.lastSince = now()
      if (this.#unknown.size < maxUnknown) this.#unknown.set(id, unknown)
      return
    }
    if (!this.users.noteDelivery(user, id)) return
    this.problems.removeUser(user.username, ['RECEIVER_SUSPECTED'])
    const { provenAt = 0, restores = 0 } = user.record ?? {}
    // Other processes must learn of a proof before their own is due.
    const isOld = Date.now() - deliveryLagMs - provenAt >= sweepIntervalMs / 2
    if (restores > 0 || isOld) this.users.markDue(user)
  }

  /** Reports unknown subscriptions. @param areRecordsRead - while they are not, every new subscription is unknown */
  reportStrays(areRecordsRead: boolean): void {
    // Every record was read in this time: another process may have made the subscription. Late deliveries of a subscription
    // that was replaced end sooner.
    const patienceMs = this.options.sweepIntervalMs * (1 + jitter)
    for (const [id, unknown] of this.#unknown) {
      if (!areRecordsRead) unknown.firstSince = now()
      if (this.users.byId.has(id) || now() - unknown.lastSince > memoryMs) {
        this.#unknown.delete(id)
        this.problems.resolve('STRAY', id)
      } else if (unknown.lastSince - unknown.firstSince >= patienceMs) {
        this.problems.begin('STRAY', strayMessage(id), { about: id, subscriptionId: id })
      }
    }
  }
}

const strayMessage = (id: number) =>
  `Deliveries arrive of subscription ${id}, which this keeper does not know: it may have lost the answer or the data of its store. ` +
  `If no other program needs the subscription, call \`client.unsubscribe(${id})\` and then \`sweep()\`. ` +
  'If several keepers share this receiver, set `reportStrays: false`.'
