/** Random sequences: plays one, lets everything become quiet, and checks that the keepers converge. */
import fc from 'fast-check'
import { type EventName, events, pool, replaceMissing, stop, sweep, themes } from './events.js'
import {
  areIdsLost,
  mayBeLeft,
  needlessRequests,
  wrongAtTheService,
  wrongInTheKeeper,
  wrongWithWrongRoutes,
} from './final-rules.js'
import { missingGaps } from './gaps.js'
import type { ModelSubscription } from './service.js'
import { defaultConfiguration, minute, type Node, second, World } from './world.js'

/** No two events at one time: no rule could tell which of them came first. */
const thenMs = fc.oneof(
  fc.integer({ min: 1, max: 300 }),
  fc.integer({ min: 300, max: 10_000 }),
  fc.integer({ min: 10_000, max: 3 * minute }),
  fc.integer({ min: 3 * minute, max: 12 * minute }),
)

/** Without `compareAndSet` one process runs at a time. */
const deployments = [
  { processes: 1, hasCompareAndSet: false },
  { processes: 1, hasCompareAndSet: true },
  { processes: 2, hasCompareAndSet: true },
  { processes: 3, hasCompareAndSet: true },
]

/** @param names - the events that can happen */
function scenariosOf(names: readonly EventName[]) {
  const steps = names.map((event) =>
    fc.record({ event: fc.constant(event), details: events[event].details, thenMs }),
  )
  return fc.record({
    seed: fc.nat(),
    users: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constant(14)),
    deployment: fc.constantFrom(...deployments),
    isStoreSynchronous: fc.boolean(),
    hasParameters: fc.boolean(),
    /** How often a user has a notification. */
    trafficEveryMs: fc.constantFrom(undefined, undefined, 20_000, 120_000),
    keeper: fc.record({
      existing: fc.constantFrom('replace' as const, 'replace' as const, 'report' as const),
      sweepIntervalMs: fc.constantFrom(10 * minute, 10 * minute, 20 * minute),
      maxRequestsPerSecond: fc.constantFrom(50, 50, 5),
      concurrency: fc.constantFrom(8, 8, 1),
    }),
    /** Whether the client has the routes of update and unsubscribe: always, never, or from the quiet time on. */
    routes: fc.constantFrom(...Array<'right'>(16).fill('right'), 'wrong' as const, 'corrected' as const),
    statusOfEnded: fc.constantFrom(404, 404, 404, 422),
    steps: fc.array(fc.oneof(...steps), { minLength: 1, maxLength: 12, size: 'max' }),
  })
}

export const scenarios = fc.oneof(...Object.values(themes).map(scenariosOf))

type Scenario = typeof scenarios extends fc.Arbitrary<infer Value> ? Value : never

/** Plays a scenario. @throws with what is wrong */
export async function play(scenario: Scenario, reached: Set<string> = new Set()): Promise<void> {
  const world = worldOf(scenario)
  world.hasWrongRoutes = scenario.routes !== 'right'
  world.hadWrongRoutes = world.hasWrongRoutes
  world.statusOfEnded = scenario.statusOfEnded
  for (let count = 0; count < scenario.deployment.processes; count++) world.start()
  await world.time.advance(20 * second)
  startTraffic(world, scenario.trafficEveryMs)
  for (const { event, details, thenMs } of scenario.steps) {
    world.log(`EVENT ${event} ${JSON.stringify(details)}`)
    world.causesMs.push(world.time.nowMs)
    events[event].happen(world, details)
    await world.time.advance(thenMs)
    refuse(world, world.violations)
  }
  // Two intervals; restores, and routes that did not work, wait for up to 15 minutes.
  const settleMs = Math.max(2 * world.intervalMs, 30 * minute)
  await becomeQuiet(world, scenario.routes === 'wrong')
  await world.time.advance(settleMs / 2)
  const inTheWay = inConflict(world)
  for (const { id } of inTheWay) world.service.end(id, 'operator')
  await world.time.advance(minute)
  for (const node of inTheWay.length > 0 ? world.nodes : []) sweep(world, node)
  await world.time.advance(settleMs / 2 - minute)
  refuse(world, world.violations)
  if (world.hasWrongRoutes) refuse(world, wrongWithWrongRoutes(world))
  else {
    refuse(world, [
      ...wrongAtTheService(world),
      ...world.nodes.flatMap((node) => wrongInTheKeeper(world, node)),
      ...missingGaps(world),
    ])
    await rest(world)
    await end(world)
  }
  for (const { kind, status } of world.requests) reached.add(`${kind} ${status ?? 'without effect'}`)
  for (const { what } of world.gaps) reached.add(`gap ${what.cause}`)
  for (const { what } of world.problems) reached.add(what.resolved ? `${what.code} resolved` : what.code)
}

function worldOf({ deployment, hasParameters, users, ...scenario }: Scenario): World {
  const { parameters: _, ...withoutParameters } = defaultConfiguration
  const configuration = hasParameters ? defaultConfiguration : withoutParameters
  return new World({ ...scenario, ...deployment, usernames: pool.slice(0, users), configuration })
}

function startTraffic(world: World, everyMs: number | undefined): void {
  if (everyMs === undefined) return
  world.time.schedule(everyMs, () => {
    const users = [...world.wanted.keys()]
    const name = users[Math.floor(world.random() * users.length)]
    if (name !== undefined) world.callback(name)
    startTraffic(world, everyMs)
  })
}

/** All faults end; an operator does what the problems ask for; what is still on its way takes effect. */
async function becomeQuiet(world: World, hasWrongRoutes: boolean): Promise<void> {
  world.log('QUIET')
  world.outage = undefined
  world.nextOutcomes.length = 0
  world.refused.clear()
  world.isReceiverBroken = false
  world.rosterMode = 'working'
  world.oldRosters.clear()
  world.store.mode = 'working'
  world.store.repairKeys()
  for (const node of world.nodes) {
    node.process.setFuse(undefined)
    node.process.resume()
    world.store.reconnect(node.process)
  }
  for (const { id } of world.service.active('another app')) world.service.end(id, 'operator')
  await world.time.advance(3 * minute)
  // Problems that ask for a deployment; and a deployment ends when the old processes have stopped.
  world.hasWrongRoutes = hasWrongRoutes
  const isCurrent = ({ process, keeper, configuration }: Node) => {
    const { problems } = process.run(() => keeper.status())
    const asksForDeployment = !hasWrongRoutes && problems.some(({ code }) => code === 'ROUTES')
    return configuration === world.configuration && !asksForDeployment
  }
  for (const node of world.nodes.filter((each) => !isCurrent(each))) stop(world, node, 100)
  replaceMissing(world, 0)
  await world.time.advance(3 * minute)
}

/** What an operator ends before `sweep()`, as a CONFLICT asks: subscriptions that no keeper can know to be its own. */
function inConflict(world: World): ModelSubscription[] {
  const isUnknowable = world.options.keeper?.existing === 'report' || world.store.hasLost()
  const isInConflict = (username: string) =>
    world.nodes.some(
      ({ process, keeper }) => process.run(() => keeper.subscription(username))?.state === 'conflict',
    )
  const names = [...world.wanted.keys()].filter(isInConflict)
  return isUnknowable ? names.flatMap((username) => world.subscriptionsOf(username)) : []
}

/** Nothing but proofs. */
async function rest(world: World): Promise<void> {
  const fromMs = world.time.nowMs
  await world.time.advance(0.9 * world.intervalMs)
  refuse(world, [...world.violations, ...needlessRequests(world, fromMs), ...wrongAtTheService(world)])
}

/** What is stored is enough for the next process to end everything. */
async function end(world: World): Promise<void> {
  const areLost = areIdsLost(world)
  for (const node of [...world.nodes]) stop(world, node, 0)
  await world.time.advance(minute)
  const report = await world.settled(world.start(world.configuration, false), (keeper) =>
    keeper.unsubscribeAll(),
  )
  if (areLost) return
  const left = world.service.active('keeper').filter((each) => !mayBeLeft(world, each))
  refuse(world, [
    ...report.failed.map(({ username, error }) => `${username} was not unsubscribed: ${error}`),
    ...left.map(({ id, usernames }) => `${id} of ${usernames} is left after unsubscribeAll()`),
  ])
}

function refuse(world: World, problems: readonly string[]): void {
  if (problems.length === 0) return
  const story = process.env.KEEPER_STORY === undefined ? [] : world.story
  throw new Error([...problems.slice(0, 12), ...story].join('\n'))
}
