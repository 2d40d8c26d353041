/** Plays a random sequence, and checks what must be true afterwards. */
import { gapsNotReported, gapsWithoutEnd } from './gaps.js'
import { endFaults, happen, restart, traffic } from './happen.js'
import { pool, type Scenario } from './happenings.js'
import {
  endsWithoutSuspicion,
  isUnknowable,
  leftOvers,
  problemsAtTheService,
  problemsInTheKeeper,
  reportsTooMany,
  restoresTooSoon,
  unresolvedProblems,
} from './invariants.js'
import { storyOf } from './story.js'
import { defaultConfiguration, type Node, seconds, World } from './world.js'

const minute = 60_000

/** Plays a scenario, ends all faults, and checks what must be true after an interval, and after a quiet time. */
export async function play(scenario: Scenario, reached: Set<string> = new Set()): Promise<void> {
  const { sweepIntervalMs } = scenario
  const world = worldOf(scenario)
  world.subscribeBystanders(pool)
  world.onDeath = () => restart(world, 1_000)
  world.start()
  await world.time.advance(20_000)
  traffic(world, scenario.trafficEveryMs)
  for (const step of scenario.steps) {
    world.happened.push(`${seconds(world.time.nowMs)} ${JSON.stringify(step)}`)
    happen(world, step)
    await world.time.advance(step.thenMs)
    refuseViolations(world)
  }
  await settle(world)
  refuseViolations(world)
  note(world, reached)
  const node = workingNode(world)
  refuse(world, [
    ...problemsAtTheService(world),
    ...problemsInTheKeeper(world, node),
    ...unresolvedProblems(world),
    ...gapsNotReported(world),
    ...restoresTooSoon(world),
    ...endsWithoutSuspicion(world),
    ...reportsTooMany(world),
    ...gapsWithoutEnd(world),
  ])
  await checkQuiet(world, 'in a quiet time', Math.max(2 * sweepIntervalMs, 16 * minute))
  refuse(world, unresolvedProblems(world, ['RECEIVER_SUSPECTED']))
  await checkSweep(world, workingNode(world))
  await checkRestart(world)
}

/** An interval or 15 minutes, the longer, from the last fault: what was sent before may take effect late. */
async function settle(world: World): Promise<void> {
  const { sweepIntervalMs = 0, maxRequestsPerSecond = 50 } = world.options.keeper ?? {}
  // Who is wanted is read once per interval: then the last few requests take their time.
  const lastRequestsMs = 5_000 + (world.wanted.size * 4_000) / maxRequestsPerSecond
  const waitMs = Math.max(sweepIntervalMs, 15 * minute) + lastRequestsMs
  endFaults(world)
  let faultsEndedMs = world.time.nowMs
  while (world.time.nowMs < faultsEndedMs + waitMs) {
    await world.time.advance(faultsEndedMs + waitMs - world.time.nowMs)
    faultsEndedMs = Math.max(faultsEndedMs, world.lateEffectAtMs)
  }
}

function worldOf(scenario: Scenario): World {
  const { seed, users, hasCompareAndSet, hasParameters, isStoreSynchronous } = scenario
  const { sweepIntervalMs, maxRequestsPerSecond, concurrency, existing } = scenario
  const { parameters: _, ...withoutParameters } = defaultConfiguration
  return new World({
    seed,
    hasCompareAndSet,
    isStoreSynchronous,
    usernames: pool.slice(0, users),
    configuration: hasParameters ? defaultConfiguration : withoutParameters,
    keeper: { sweepIntervalMs, maxRequestsPerSecond, concurrency, existing },
  })
}

/** The process that sent the last request: the one that is at work. */
function workingNode(world: World): Node {
  const { process } = world.requests.at(-1) ?? {}
  const node = world.nodes.find((each) => each.process === process)
  refuse(world, node === undefined ? ['No living process is at work.'] : [])
  return node as Node
}

async function checkQuiet(world: World, when: string, ms: number): Promise<void> {
  const { gaps, problems } = world
  const before = { gaps: gaps.length, problems: problems.length, requests: world.requests.length }
  await world.time.advance(ms)
  refuseViolations(world)
  const loud = world.requests
    .slice(before.requests)
    .filter(({ kind, effect }) => kind === 'unsubscribe' || kind === 'recreate' || effect === 201)
  refuse(world, [
    ...loud.map(({ kind, username, effect }) => `${when}: ${kind} for ${username}, answered ${effect}`),
    ...gaps.slice(before.gaps).map(({ what }) => `${when}: a gap of ${what.username} (${what.cause})`),
    ...problems
      .slice(before.problems)
      .filter(
        ({ what }) => !what.resolved && !(what.code === 'STRAY' && isUnknowable(world, what.subscriptionId)),
      )
      .map(({ what }) => `${when}: ${what.code}: ${what.message}`),
    ...problemsAtTheService(world),
  ])
}

/** A pass finds all as it should be, and says so. */
async function checkSweep(world: World, node: Node): Promise<void> {
  const { size } = world.wanted
  const { problems, ...report } = await world.settled(node, (keeper) => keeper.sweep())
  const right = { wanted: size, active: size, created: 0, restored: 0, removed: 0, failed: [] }
  const isRight = JSON.stringify(report) === JSON.stringify(right)
  refuse(world, isRight ? [] : [`a pass in a quiet time reports ${JSON.stringify(report)} for ${size} users`])
}

/** What is stored is enough for the next process: nothing is created anew, and everything can be ended. */
async function checkRestart(world: World): Promise<void> {
  for (const node of [...world.nodes]) await world.stop(node)
  const node = world.start()
  await checkQuiet(world, 'after a restart', (world.options.keeper?.sweepIntervalMs ?? 0) + minute)
  refuse(world, problemsInTheKeeper(world, node))
  world.isSayingGoodbye = true
  const report = await world.settled(node, (keeper) => keeper.unsubscribeAll())
  const left = leftOvers(world)
  refuse(world, [
    ...report.failed.map(({ username }) => `${username} was not unsubscribed`),
    ...left.map(({ id }) => `${id} is left after unsubscribeAll`),
  ])
  refuseViolations(world)
}

function note(world: World, reached: Set<string>): void {
  for (const { kind, effect } of world.requests) reached.add(`${kind} ${effect ?? 'without effect'}`)
  for (const { what } of world.gaps) reached.add(`gap ${what.cause}`)
  for (const { what } of world.problems) reached.add(what.resolved ? `${what.code} is over` : what.code)
}

function refuseViolations(world: World): void {
  refuse(world, world.violations)
}

function refuse(world: World, problems: readonly string[]): void {
  if (problems.length === 0) return
  const story = process.env.KEEPER_STORY === undefined ? [] : storyOf(world)
  throw new Error([...problems.slice(0, 12), ...story].join('\n'))
}
