/** What happens to processes and their configuration. */

import fc from 'fast-check'
import { currentNodes } from '../rules/knowledge.js'
import { type Configuration, defaultConfiguration, type Node, type World } from '../world.js'
import { event, forMs, minute, node, nothing } from './event.js'

const restartAfterMs = fc.oneof(
  fc.integer({ min: 10, max: 2_000 }),
  fc.integer({ min: 2_000, max: 5 * minute }),
)

export const processEvents = {
  crash: event(fc.record({ node, restartAfterMs }), (world, { node, restartAfterMs }) => {
    const killed = world.node(node)
    world.onDeath = () => restart(world, restartAfterMs)
    if (killed !== undefined) world.kill(killed)
  }),

  /** The process dies at one of its next requests or store operations, before or after it takes effect. */
  crashLater: event(
    fc.record({
      node,
      operations: fc.integer({ min: 1, max: 30 }),
      blows: fc.constantFrom('before' as const, 'after' as const),
      restartAfterMs,
    }),
    (world, { node, operations, blows, restartAfterMs }) => {
      const killed = world.node(node)
      world.onDeath = () => restart(world, restartAfterMs)
      killed?.process.setFuse({ operations, blows })
    },
  ),

  /** A deployment stops a process and starts the next. */
  stop: event(fc.record({ node, restartAfterMs }), (world, { node, restartAfterMs }) => {
    const stopped = world.node(node)
    if (stopped !== undefined) stop(world, stopped, restartAfterMs)
  }),

  /** An app stops its keeper for a while. */
  pause: event(fc.record({ node, forMs }), (world, { node, forMs }) => {
    const paused = world.node(node)
    if (paused !== undefined) pause(world, paused, forMs)
  }),

  /** The process gets no processor time, as after SIGSTOP. */
  suspend: event(fc.record({ node, forMs }), (world, { node, forMs }) => {
    const process = world.node(node)?.process
    process?.suspend()
    world.time.schedule(forMs, () => process?.resume())
  }),

  /** The machine sleeps: its monotonic clock stands still. */
  sleep: event(fc.record({ node, forMs }), (world, { node, forMs }) => {
    const process = world.node(node)?.process
    process?.sleep()
    world.time.schedule(forMs, () => process?.resume())
  }),

  /** The process, or its machine, stands still between one of its next operations and the answer. */
  standStillLater: event(
    fc.record({
      node,
      operations: fc.integer({ min: 1, max: 30 }),
      how: fc.constantFrom('suspend' as const, 'sleep' as const),
      forMs,
    }),
    (world, { node, operations, how, forMs }) => {
      const process = world.node(node)?.process
      const happen = () => {
        process?.[how]()
        world.time.schedule(forMs, () => process?.resume())
      }
      process?.setFuse({ operations, blows: 'after', happen })
    },
  ),

  jumpClock: event(
    fc.record({
      node,
      byMs: fc.constantFrom(-86_400_000, -600_000, -30_000, 30_000, 600_000, 86_400_000),
    }),
    (world, { node, byMs }) => world.node(node)?.process.jumpWallClock(byMs),
  ),

  startAnother: event(nothing, (world) => {
    if (world.options.hasCompareAndSet && world.nodes.length < 3) world.start()
  }),

  sweep: event(fc.record({ node }), (world, { node }) => {
    const sweeping = world.node(node)
    if (sweeping !== undefined) world.sweeps.begin(sweeping)
  }),

  rotate: event(nothing, (world) => rotate(world)),

  reconfigure: event(fc.record({ configuration: fc.nat({ max: 5 }) }), (world, { configuration }) => {
    if (isOrderKnown(world)) reconfigure(world, configurations[configuration] as Configuration)
  }),
}

const configurations: readonly Configuration[] = [
  defaultConfiguration,
  { ...defaultConfiguration, parameters: { token: 's3cret-a' } },
  { ...defaultConfiguration, parameters: { tenant: 's3cret-b' } },
  { ...defaultConfiguration, callbackUrl: 'https://app.example.com/elsewhere' },
  { ...defaultConfiguration, notificationTypes: ['conversation-ai'] },
  { ...defaultConfiguration, notificationTypes: ['behavioral', 'conversation-ai'] },
]

/** Starts a process in place of one that has died, if it is missed. */
export function restart(world: World, afterMs: number): void {
  world.time.schedule(afterMs, () => {
    if (!world.haveFaultsEnded) replaceMissing(world)
  })
}

function replaceMissing(world: World): void {
  const { nodes, options } = world
  const room = options.hasCompareAndSet === true || nodes.length === 0
  if (room && currentNodes(world).length < (options.processes ?? 1)) world.start()
}

function stop(world: World, node: Node, restartAfterMs: number): void {
  if (!node.process.isRunning) return
  node.process.run(() => {
    node.keeper.stop().then(
      () => {
        world.kill(node)
        // When the faults ended, a process that was still about to stop was not missed.
        if (world.haveFaultsEnded) replaceMissing(world)
        else restart(world, restartAfterMs)
      },
      () => world.violate(node.process, 'stop rejected'),
    )
  })
}

function pause(world: World, node: Node, forMs: number): void {
  const { process, keeper } = node
  if (!process.isRunning) return
  world.paused.add(node)
  process.run(() => {
    keeper.stop().then(
      () => process.receive(forMs, () => wake(world, node)),
      () => world.violate(process, 'stop rejected'),
    )
  })
}

function wake(world: World, node: Node): void {
  if (!world.paused.delete(node)) return
  node.process.run(() => node.keeper.start())
}

/** Every living keeper gets the new secret; a process that starts later reads it from its configuration. */
function rotate(world: World): void {
  if (world.configuration.parameters === undefined) return
  const parameters = Object.fromEntries(
    Object.keys(world.configuration.parameters).map((name) => [name, world.newSecret()]),
  )
  const before = world.configuration
  const configuration = { ...before, parameters }
  world.configure(configuration)
  world.rotatedAtMs = world.time.nowMs
  for (const node of world.nodes) {
    const { process, keeper } = node
    if (node.configuration === before) node.configuration = configuration
    world.rotating.add(process)
    process.receive(0, () => {
      keeper
        .rotateParameters({ parameters })
        .then(
          ({ confirmed }) => world.confirmations.add(process, confirmed, configuration),
          () => {},
        )
        .finally(() => world.rotating.delete(process))
    })
  }
}

/**
 * Whether everybody can know that what is deployed now is newer. Of two that are given in the same moment nobody can, and
 * of two that start while the store fails, the last one to reach it wins, by rule 10 of the design. A rotation is followed
 * by the deployment of its values, and not of others, until it has reached the store.
 */
function isOrderKnown({ configuredAtMs, nodes, rotatedAtMs, rotating, time, store }: World): boolean {
  if (configuredAtMs === time.nowMs || !nodes.every(({ process }) => store.hasAnnounced(process)))
    return false
  if (rotatedAtMs !== configuredAtMs) return true
  // A process that sleeps rotates when it wakes up.
  const isRotating = [...rotating].some(({ isDead }) => !isDead)
  return !isRotating && store.mode === 'working' && time.nowMs - rotatedAtMs > minute
}

/** A rolling deployment: the new process starts first, then the old ones stop. */
function reconfigure(world: World, configuration: Configuration): void {
  const old = [...world.nodes]
  world.configure(configuration)
  const isRolling = world.options.hasCompareAndSet === true
  if (isRolling || old.length === 0) world.start()
  for (const each of old) {
    world.time.schedule(isRolling ? world.random() * 5 * minute : 0, () => stop(world, each, 100))
  }
}

/** Everything that was done to processes is undone, and so many run as there are to be. */
export function endProcessFaults(world: World): void {
  for (const node of world.nodes) {
    node.process.setFuse(undefined)
    node.process.resume()
    world.store.reconnect(node.process)
    wake(world, node)
  }
  const { processes = 1, hasCompareAndSet } = world.options
  const isMissing = () => currentNodes(world).length < processes
  if (hasCompareAndSet) while (isMissing()) world.start()
  // Such a store is for one process: the next one starts when the one before has stopped.
  else if (world.nodes.length === 0) world.start()
  else if (isMissing()) for (const node of world.nodes) stop(world, node, 0)
}
