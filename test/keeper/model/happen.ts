/** Lets the steps of a sequence happen to a world. */
import { pool, type Step } from './happenings.js'
import { type Configuration, defaultConfiguration, type Node, type World } from './world.js'

const minute = 60_000

const configurations: readonly Configuration[] = [
  defaultConfiguration,
  { ...defaultConfiguration, parameters: { token: 's3cret-a' } },
  { ...defaultConfiguration, parameters: { tenant: 's3cret-b' } },
  { ...defaultConfiguration, callbackUrl: 'https://app.example.com/elsewhere' },
  { ...defaultConfiguration, notificationTypes: ['conversation-ai'] },
  { ...defaultConfiguration, notificationTypes: ['behavioral', 'conversation-ai'] },
]

export function happen(world: World, step: Step): void {
  const until = (forMs: number, undo: () => void) => {
    world.time.schedule(forMs, undo)
  }
  const name = 'user' in step ? (pool[step.user] as string) : ''
  const node = 'node' in step ? world.nodes[step.node % Math.max(1, world.nodes.length)] : world.nodes[0]
  switch (step.do) {
    case 'wait':
      return
    case 'end':
      world.end(step.users.map((index) => pool[index] as string))
      return
    case 'call back':
      for (let count = 0; count < step.times; count++) world.callback(name, step.observedAfterMs)
      return
    case 'break receiver':
      world.isReceiverBroken = true
      until(step.forMs, () => {
        world.isReceiverBroken = false
      })
      return
    case 'wear out':
      wearOut(world, name, step)
      until(step.forMs, () => world.wornOut.delete(step))
      return
    case 'weather': {
      const weather = () => step.fate
      world.weather = weather
      until(step.forMs, () => {
        if (world.weather === weather) world.weather = undefined
      })
      return
    }
    case 'fates':
      world.nextFates.push(...step.fates)
      return
    case 'refuse':
      world.refused.add(name)
      until(step.forMs, () => world.refused.delete(name))
      return
    case 'want':
      world.want(name)
      return
    case 'want no longer':
      // An empty roster removes nobody, so the last one stays.
      if (world.wanted.size > 1) world.wantNoLonger(name)
      return
    case 'want whom nobody can send':
      world.unsendable.add(step)
      until(step.forMs, () => world.unsendable.delete(step))
      return
    case 'roster':
      world.rosterMode = step.mode
      until(step.forMs, () => {
        world.rosterMode = 'working'
      })
      return
    case 'store':
      world.store.mode = step.mode
      until(step.forMs, () => {
        world.store.mode = 'working'
      })
      return
    case 'forget':
      world.forget()
      return
    case 'crash':
      if (node === undefined) return
      world.onDeath = () => restart(world, step.restartAfterMs)
      world.kill(node)
      return
    case 'crash later':
      world.onDeath = () => restart(world, step.restartAfterMs)
      if (node !== undefined) world.killAt(node, step)
      return
    case 'stop':
      if (node !== undefined) stop(world, node, step.restartAfterMs)
      return
    case 'suspend':
      if (node === undefined) return
      node.process.suspend()
      until(step.forMs, () => node.process.resume())
      return
    case 'sleep':
      if (node === undefined) return
      node.process.sleep()
      until(step.forMs, () => node.process.resume())
      return
    case 'pause':
      if (node !== undefined) pause(world, node, step.forMs)
      return
    case 'cut off':
      if (node === undefined) return
      world.store.cutOff(node.process)
      until(step.forMs, () => world.store.reconnect(node.process))
      return
    case 'jump clock':
      if (node !== undefined) world.jumpWallClock(node, step.byMs)
      return
    case 'start another':
      if (world.options.hasCompareAndSet && world.nodes.length < 2) world.start()
      return
    case 'sweep':
      node?.process.receive(0, () => void node.keeper.sweep().catch(() => {}))
      return
    case 'rotate':
      rotate(world)
      return
    case 'reconfigure':
      if (isOrderKnown(world)) reconfigure(world, configurations[step.configuration] as Configuration)
      return
    case 'subscribe somebody else':
      // With an outsider in it, so that it is never one that a first meeting may replace.
      world.subscribeSomebodyElse([name, pool[step.with] as string, 'outsider'])
      return
    case 'subscribe twin':
      world.subscribeSomebodyElse([name])
  }
}

/** What the service makes for a user ends again and again, for as long as the step lasts. */
function wearOut(world: World, username: string, step: Step): void {
  world.wornOut.add(step)
  const endSoon = () => {
    if (!world.wornOut.has(step)) return
    world.end([username])
    world.time.schedule(10_000, endSoon)
  }
  endSoon()
}

export function restart(world: World, afterMs: number): void {
  world.time.schedule(afterMs, () => {
    const { configuration, nodes, options } = world
    // One with an older configuration stands aside for good: it is not the one that works.
    const isNeeded = !nodes.some((each) => each.configuration === configuration)
    if (nodes.length === 0 || (options.hasCompareAndSet === true && isNeeded)) world.start()
  })
}

/** A deployment stops one process and starts the next. */
function stop(world: World, node: Node, restartAfterMs: number): void {
  if (!node.process.isRunning) return
  node.process.run(() => {
    node.keeper.stop().then(
      () => {
        world.kill(node)
        restart(world, restartAfterMs)
      },
      () => world.violate(node.process, 'stop rejected'),
    )
  })
}

/** An app lets its keeper rest for a while. */
function pause(world: World, node: Node, forMs: number): void {
  const { process, keeper } = node
  if (!process.isRunning) return
  world.resting.add(node)
  process.run(() => {
    keeper.stop().then(
      () => process.receive(forMs, () => wake(world, node)),
      () => world.violate(process, 'stop rejected'),
    )
  })
}

function wake(world: World, node: Node): void {
  if (!world.resting.delete(node)) return
  node.process.run(() => node.keeper.start())
}

/** All living keepers are told the new secret; a process that starts later reads it from its configuration. */
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
    process.receive(0, () => {
      keeper.rotateParameters({ parameters }).then(
        ({ confirmed }) => world.confirmations.add(process, confirmed, configuration),
        () => {},
      )
    })
  }
}

/**
 * Whether everybody can know that what is deployed now is newer. Of two that are given in the same moment nobody can;
 * and a rotation is followed by the deployment of its values, and not of others, until it has reached the store.
 */
function isOrderKnown({ configuredAtMs, rotatedAtMs, time, store }: World): boolean {
  if (configuredAtMs === time.nowMs) return false
  return rotatedAtMs !== configuredAtMs || (store.mode === 'working' && time.nowMs - rotatedAtMs > minute)
}

/** A rolling deployment: the new process starts first, then the old ones stop. */
function reconfigure(world: World, configuration: Configuration): void {
  const old = [...world.nodes]
  world.configure(configuration)
  if (world.options.hasCompareAndSet || old.length === 0) world.start()
  for (const each of old) {
    const isRolling = world.options.hasCompareAndSet
    world.time.schedule(isRolling ? world.random() * 5 * minute : 0, () => stop(world, each, 100))
  }
}

/** Callbacks for users at random. */
export function traffic(world: World, everyMs: number | undefined): void {
  if (everyMs === undefined) return
  world.time.schedule(everyMs, () => {
    const users = [...world.wanted.keys()]
    const name = users[Math.floor(world.random() * users.length)]
    if (name !== undefined) world.callback(name)
    traffic(world, everyMs)
  })
}

export function endFaults(world: World): void {
  world.weather = undefined
  world.nextFates.length = 0
  world.refused.clear()
  world.isReceiverBroken = false
  world.rosterMode = 'working'
  world.unsendable.clear()
  world.wornOut.clear()
  world.store.mode = 'working'
  for (const node of world.nodes) {
    node.process.resume()
    world.store.reconnect(node.process)
    wake(world, node)
  }
  world.unsubscribeSomebodyElse()
  world.unsubscribeLost()
  // One with an older configuration stands aside for good.
  if (!world.nodes.some(({ configuration }) => configuration === world.configuration)) world.start()
}
