/** Deliveries prove known subscriptions. Deliveries of unknown subscriptions are a `STRAY`. */
import type { Problems } from './reporter.js'
import { deliveryLagMs, jitter, minute, now } from './timing.js'
import type { Users } from './users.js'

/** An unknown subscription is forgotten after this time without a delivery. */
const memoryMs = 60 * minute
/** The most ids that are remembered: more ids are forged. */
const maxUnknown = 1_000

interface Needs {
  readonly problems: Problems
  readonly reportStrays: boolean
  readonly sweepIntervalMs: number
  readonly users: Users
}

export class Deliveries {
  readonly #needs: Needs
  readonly #unknown = new Map<number, { firstSince: number; lastSince: number }>()

  constructor(needs: Needs) {
    this.#needs = needs
  }

  /** Records a delivery at almost no cost: the queue does the rest. */
  observe(id: number, isWatching: boolean): void {
    const { problems, reportStrays, sweepIntervalMs, users } = this.#needs
    const user = users.byId.get(id)
    if (user === undefined) {
      // The command line's `check` delivers with the id 0, which no subscription has.
      const mayBeStray = Number.isSafeInteger(id) && id !== 0 && !users.byId.has(id)
      if (!isWatching || !reportStrays || !mayBeStray) return
      const unknown = this.#unknown.get(id) ?? { firstSince: now(), lastSince: now() }
      unknown.lastSince = now()
      if (this.#unknown.size < maxUnknown) this.#unknown.set(id, unknown)
      return
    }
    if (!users.noteDelivery(user, id)) return
    problems.removeUser(user.username, ['RECEIVER_SUSPECTED'])
    const { provenAt = 0, restores = 0 } = user.record ?? {}
    // Other processes must learn of a proof before their own is due.
    const isOld = Date.now() - deliveryLagMs - provenAt >= sweepIntervalMs / 2
    if (restores > 0 || isOld) users.markDue(user)
  }

  /** Reports unknown subscriptions. @param areRecordsRead - while they are not, every new subscription is unknown */
  reportStrays(areRecordsRead: boolean): void {
    const { problems, sweepIntervalMs, users } = this.#needs
    // Every record was read in this time: another process may have made the subscription. Late deliveries of a subscription
    // that was replaced end sooner.
    const patienceMs = sweepIntervalMs * (1 + jitter)
    for (const [id, unknown] of this.#unknown) {
      if (!areRecordsRead) unknown.firstSince = now()
      if (users.byId.has(id) || now() - unknown.lastSince > memoryMs) {
        this.#unknown.delete(id)
        problems.resolve('STRAY', id)
      } else if (unknown.lastSince - unknown.firstSince >= patienceMs) {
        problems.begin('STRAY', strayMessage(id), { about: id, subscriptionId: id })
      }
    }
  }
}

const strayMessage = (id: number) =>
  `Deliveries arrive of subscription ${id}, which this keeper does not know: it may have lost the answer or the data of its store. ` +
  `If no other program needs the subscription, call \`client.unsubscribe(${id})\` and then \`sweep()\`. ` +
  'If several keepers share this receiver, set `reportStrays: false`.'
