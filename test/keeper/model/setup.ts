/** What the tests in virtual time begin with. */
import { afterAll, beforeAll, expect } from 'vitest'
import { problemsAtTheService } from './rules/final-state.js'
import { installVirtualProcesses } from './virtual-process.js'
import { type Node, World, type WorldOptions } from './world.js'

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute

/** For the whole file: processes of a world find their clocks and timers in the globals. */
export function useVirtualProcesses(): void {
  let uninstall = () => {}
  beforeAll(() => {
    uninstall = installVirtualProcesses()
  })
  afterAll(() => uninstall())
}

export function agents(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `agent${index}`)
}

/** A world whose keeper has subscribed everybody. */
export async function settledWorld(
  options: Partial<WorldOptions> & { readonly users: number },
): Promise<World> {
  const world = new World({ seed: 1, usernames: agents(options.users), ...options })
  world.start()
  await world.time.advance(minute + options.users * 25)
  expect(problemsAtTheService(world)).toEqual([])
  return world
}

/** The first process that is alive. */
export function nodeOf(world: World): Node {
  const [node] = world.nodes
  if (node === undefined) throw new Error('No process is alive.')
  return node
}

/** What was told of troubles, one after the other. */
export function codes(world: World): string[] {
  return world.problems.map(({ what }) => (what.resolved ? `${what.code} resolved` : what.code))
}

/** What stands in a process's status. */
export function troublesOf({ process, keeper }: Node): string[] {
  return process.run(() => keeper.status()).problems.map(({ code }) => code)
}

/** The ids of all active subscriptions. */
export function idsAtTheService(world: World): number[] {
  return inOrder(world.service.active().map(({ id }) => id))
}

/** The ids that a process shows. */
export function keptIds({ keeper, process }: Node): number[] {
  return inOrder(
    process.run(() => [...keeper.subscriptions()]).map(({ subscriptionId = 0 }) => subscriptionId),
  )
}

function inOrder(ids: readonly number[]): number[] {
  return [...ids].sort((one, other) => one - other)
}
