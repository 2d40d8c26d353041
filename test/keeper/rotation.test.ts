/** A rotation of the token while callbacks arrive, in rolling deployments: old processes run beside new ones. */
import { beforeEach, expect, test } from 'vitest'
import { minute, type Node, second, type World } from './convergence/world.js'
import { settledWorld, tellStories } from './stories.js'

tellStories()

interface Settings {
  /** The tokens that the receiver takes. */
  readonly takes: readonly string[]
  /** The token that the keeper gives its subscriptions. */
  readonly sends: string
}

let world: World
let refused: string[]
const takenBy = new WeakMap<Node, readonly string[]>()

const oldToken = 's3cret-1'
const newToken = 's3cret-2'

beforeEach(async () => {
  refused = []
  world = await settledWorld({ users: 200, processes: 3 })
  for (const node of world.nodes) takenBy.set(node, [oldToken])
})

/** Each second a callback for some users, which arrives up to 20 seconds later at any process. */
function sendCallbacks(): void {
  for (const { id, parameters } of world.service.active('keeper')) {
    if (world.random() > 0.1) continue
    const token = parameters.token ?? ''
    world.time.schedule(world.random() * 20 * second, () => {
      const node = world.node(Math.floor(world.random() * world.nodes.length))
      const isTaken = node !== undefined && takenBy.get(node)?.includes(token) === true
      if (!isTaken) refused.push(token)
      world.service.callback(id, isTaken)
    })
  }
  world.time.schedule(second, sendCallbacks)
}

/** A rolling deployment: each new process starts, and a while later an old one stops. @returns one of the new ones */
async function deploy({ takes, sends }: Settings, besideMs = 30 * second): Promise<Node | undefined> {
  for (const old of [...world.nodes]) {
    world.configuration = { ...world.configuration, parameters: { token: sends } }
    const node = world.start()
    takenBy.set(node, takes)
    await world.time.advance(besideMs)
    await world.settled(old, (keeper) => keeper.stop())
    old.process.kill()
  }
  return world.node(0)
}

/** Resolves when every subscription has the value, and no callback with another one is on its way. */
async function waitForValue(node: Node | undefined): Promise<void> {
  if (node === undefined) throw new Error('No process runs.')
  expect(await world.settled(node, (keeper) => keeper.sweep())).toMatchObject({ failed: [] })
  await world.time.advance(minute)
}

const both = [oldToken, newToken]

test('in three deployments refuses no callback', async () => {
  sendCallbacks()
  await deploy({ takes: both, sends: oldToken })
  await waitForValue(await deploy({ takes: both, sends: newToken }))
  await deploy({ takes: [newToken], sends: newToken })
  await world.time.advance(5 * minute)
  expect(refused).toEqual([])
  expect(world.gaps).toEqual([])
  expect(world.service.active('keeper').map(({ parameters }) => parameters.token)).toEqual(
    Array(200).fill(newToken),
  )
})
