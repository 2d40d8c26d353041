/** A sweep, called in any process, leaves every user subscribed whom its report does not name as failed. */
import type { SweepReport } from 'notification-subscriber/keeper'
import { type Node, seconds, type World } from '../world.js'

export class Sweeps {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  begin(node: Node): void {
    const { process, keeper } = node
    const sinceMs = this.#world.time.nowMs
    process.receive(0, () => {
      keeper.sweep().then(
        (report) => this.#check(node, sinceMs, report),
        (error: unknown) => this.#world.violate(process, `sweep rejected: ${error}`),
      )
    })
  }

  #check({ process, configuration }: Node, sinceMs: number, { failed }: SweepReport): void {
    const { service, wanted, rostersRead } = this.#world
    if (process.isDead || configuration !== this.#world.configuration || this.#world.configuredAtMs > sinceMs)
      return
    // What a roster said that was no roster is not the keeper's fault.
    if (!rostersRead.some((read) => read.process === process && read.askedMs >= sinceMs)) return
    const failedNames = new Set(failed.map(({ username }) => username))
    for (const [username, wantedSinceMs] of wanted) {
      if (wantedSinceMs > sinceMs || failedNames.has(username)) continue
      const all = service.subscriptions.filter(({ usernames }) => usernames.includes(username))
      const wasThere = all.some(({ end }) => end === undefined || end.atMs >= sinceMs)
      if (wasThere) continue
      const at = seconds(this.#world.time.nowMs)
      this.#world.violate(process, `the sweep of ${seconds(sinceMs)} to ${at} left ${username} unsubscribed`)
    }
  }
}
