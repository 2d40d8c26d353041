/** Plays a random sequence, and checks what must be true afterwards. */
import { endFaults, happen, restart, traffic } from './happen.js'
import { pool, type Scenario } from './happenings.js'
import {
  gapsNotReported,
  isUnknowable,
  problemsAtTheService,
  problemsInTheKeeper,
  unresolvedProblems,
} from './invariants.js'
import { defaultConfiguration, type Node, seconds, World } from './world.js'

const minute = 60_000

/** Plays a scenario, ends all faults, and checks what must be true after an interval, and after a quiet time. */
export async function play(scenario: Scenario, reached: Set<string> = new Set()): Promise<void> {
  const world = worldOf(scenario)
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
  endFaults(world)
  await world.time.advance(settleMs)
  refuseViolations(world)
  note(world, reached)
  const node = workingNode(world)
  refuse(world, [
    ...problemsAtTheService(world),
    ...problemsInTheKeeper(world, node),
    ...unresolvedProblems(world),
    ...gapsNotReported(world),
  ])
  await checkQuiet(world, 'in a quiet time', 2 * intervalMs)
  await checkRestart(world)
}

const intervalMs = 15 * minute
/** An interval or 15 minutes, the longer, and the time that the last requests take. */
const settleMs = intervalMs + minute

function worldOf({ seed, users, hasCompareAndSet, hasParameters }: Scenario): World {
  const { parameters: _, ...withoutParameters } = defaultConfiguration
  return new World({
    seed,
    hasCompareAndSet,
    usernames: pool.slice(0, users),
    configuration: hasParameters ? defaultConfiguration : withoutParameters,
  })
}

/** The process that sent the last request: the one that is at work. */
function workingNode(world: World): Node {
  const { process } = world.requests.at(-1) ?? {}
  const node = world.nodes.find((each) => each.process === process)
  if (node === undefined) throw new Error(`No living process is at work.`)
  return node
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

/** What is stored is enough for the next process: nothing is created anew, and everything can be ended. */
async function checkRestart(world: World): Promise<void> {
  for (const node of [...world.nodes]) await world.stop(node)
  const node = world.start()
  await checkQuiet(world, 'after a restart', intervalMs + minute)
  refuse(world, problemsInTheKeeper(world, node))
  world.isSayingGoodbye = true
  const report = await world.settled(node, (keeper) => keeper.unsubscribeAll())
  const left = world.service.active().filter(({ createdBy }) => createdBy === 'keeper')
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
  const story = process.env.KEEPER_STORY === undefined ? [] : world.story()
  throw new Error([...problems.slice(0, 12), ...story].join('\n'))
}
