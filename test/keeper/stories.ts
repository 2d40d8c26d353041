/** What the stories of the keeper begin with: a service, a store and processes in virtual time. */
import type { KeeperProblem, SweepReport } from 'notification-subscriber/keeper'
import { afterEach, beforeAll, expect } from 'vitest'
import { installVirtualProcesses } from './convergence/virtual-process.js'
import { minute, type Node, World, type WorldOptions } from './convergence/world.js'

const worlds: World[] = []

/** For the whole file: processes find their clocks in the globals, and no world may see what must never happen. */
export function tellStories(): void {
  beforeAll(() => installVirtualProcesses())
  afterEach(() => {
    for (const { violations } of worlds.splice(0)) expect(violations).toEqual([])
  })
}

export function agents(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `agent${index}`)
}

export function worldOf(options: Partial<WorldOptions> & { readonly users?: number } = {}): World {
  const { users = 3, ...others } = options
  const world = new World({ seed: 1, usernames: agents(users), ...others })
  worlds.push(world)
  return world
}

/** A world in which as many keepers keep watch, and have subscribed every user. */
export async function settledWorld(
  options: Partial<WorldOptions> & { readonly users?: number } = {},
): Promise<World> {
  const world = worldOf(options)
  for (let count = 0; count < (options.processes ?? 1); count++) world.start()
  await world.time.advance(minute + world.wanted.size * 25)
  expect(world.service.active('keeper')).toHaveLength(world.wanted.size)
  return world
}

/** The first process that is alive. */
export function nodeOf(world: World, index = 0): Node {
  const node = world.nodes[index]
  if (node === undefined) throw new Error('The process is not alive.')
  return node
}

export function problemsOf({ process, keeper }: Node): readonly KeeperProblem[] {
  return process.run(() => keeper.status()).problems
}

export function problemCodes(node: Node): string[] {
  return problemsOf(node).map(({ code }) => code)
}

export function statesOf({ process, keeper }: Node): Record<string, string> {
  const all = process.run(() => [...keeper.subscriptions()])
  return Object.fromEntries(all.map(({ username, state }) => [username, state]))
}

/** A process that sweeps once, and does not watch. */
export async function swept(world: World): Promise<{ node: Node; report: SweepReport }> {
  const node = world.start(undefined, false)
  return { node, report: await world.settled(node, (keeper) => keeper.sweep()) }
}
