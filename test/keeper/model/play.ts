/**
 * Plays a random sequence, and checks what must be true afterwards. What can happen stands in `events/`, what is promised
 * in `rules/`:
 *
 * - `requests.ts`: what no request may be, at any time
 * - `sweeps.ts`, `confirmations.ts`: what the answers of `sweep` and `rotateParameters` must be true of
 * - `final-state.ts`: one subscription per user, as configured, and every process knows it
 * - `gaps.ts`: every time without a subscription is in a gap, and every reported end was one
 * - `restores.ts`, `problem-reports.ts`: not too often
 * - `knowledge.ts`: what no process can know any more, which all of these allow for
 */

import { isDeepStrictEqual } from 'node:util'
import type { SweepReport } from 'notification-subscriber/keeper'
import { pool } from './events/event.js'
import { endProcessFaults, restart } from './events/processes.js'
import {
  isUnknowable,
  leftOvers,
  problemsAtTheService,
  problemsInTheKeeper,
  recordsOfNobody,
} from './rules/final-state.js'
import { gapsNotReported, gapsWithoutEnd } from './rules/gaps.js'
import { currentNodes } from './rules/knowledge.js'
import { endsWithoutSuspicion, needlessReports, unresolvedProblems } from './rules/problem-reports.js'
import { longestRestoreWaitMs, mayWait, restoresTooSoon } from './rules/restores.js'
import { events, type Scenario } from './scenarios.js'
import { isKept, type ModelSubscription } from './service.js'
import { storyOf } from './story.js'
import { defaultConfiguration, haveSameClock, type Node, seconds, World } from './world.js'

const minute = 60_000

/** Plays a scenario, ends all faults, and checks what must be true after an interval, and after a quiet time. */
export async function play(scenario: Scenario, reached: Set<string> = new Set()): Promise<void> {
  const world = worldOf(scenario)
  await happen(world, scenario)
  endFaults(world)
  if (scenario.ending === 'sweep') await checkLoneSweep(world)
  else await checkInterval(world)
  note(world, reached)
  await checkRestart(world)
}

function worldOf(scenario: Scenario): World {
  const { seed, users, processes, hasCompareAndSet, hasParameters, isStoreSynchronous } = scenario
  const { sweepIntervalMs, maxRequestsPerSecond, concurrency, existing } = scenario
  const { parameters: _, ...withoutParameters } = defaultConfiguration
  return new World({
    seed,
    processes,
    hasCompareAndSet,
    isStoreSynchronous,
    usernames: pool.slice(0, users),
    configuration: hasParameters ? defaultConfiguration : withoutParameters,
    keeper: { sweepIntervalMs, maxRequestsPerSecond, concurrency, existing },
  })
}

async function happen(world: World, { processes, steps, trafficEveryMs }: Scenario): Promise<void> {
  world.subscribeBystanders(pool)
  world.onDeath = () => restart(world, 1_000)
  for (let count = 0; count < processes; count++) world.start()
  await world.time.advance(20_000)
  traffic(world, trafficEveryMs)
  for (const step of steps) {
    world.happened.push(`${seconds(world.time.nowMs)} ${JSON.stringify(step)}`)
    events[step.event].happen(world, step.details)
    await world.time.advance(step.thenMs)
    refuseViolations(world)
  }
}

/** Callbacks for users at random. */
function traffic(world: World, everyMs: number | undefined): void {
  if (everyMs === undefined) return
  world.time.schedule(everyMs, () => {
    const users = [...world.wanted.keys()]
    const name = users[Math.floor(world.random() * users.length)]
    if (name !== undefined) world.callback(name)
    traffic(world, everyMs)
  })
}

function endFaults(world: World): void {
  world.haveFaultsEnded = true
  world.everyOutcome = undefined
  world.nextOutcomes.length = 0
  world.refused.clear()
  world.isReceiverBroken = false
  world.rosterMode = 'working'
  world.invalidNames.clear()
  world.repeatedEnds.clear()
  world.store.mode = 'working'
  world.store.clean()
  endProcessFaults(world)
  world.unsubscribeSomebodyElse()
  world.unsubscribeLost()
}

/** After an interval everything is as it should be in every process, and stays so. */
async function checkInterval(world: World): Promise<void> {
  await settle(world)
  if (actAsOperator(world)) await settle(world)
  refuseViolations(world)
  refuse(world, [
    ...problemsAtTheService(world),
    ...currentNodes(world).flatMap((node) => problemsInTheKeeper(world, node)),
    ...unresolvedProblems(world),
    ...gapsNotReported(world),
    ...restoresTooSoon(world),
    ...endsWithoutSuspicion(world),
    ...needlessReports(world),
    ...gapsWithoutEnd(world),
    ...recordsOfNobody(world),
  ])
  const sent = world.requests.length
  const quietMs = Math.max(1.25 * intervalOf(world), 16 * minute)
  await checkQuiet(world, 'in a quiet time', quietMs)
  checkCosts(world, world.requests.length - sent, quietMs)
  refuse(world, unresolvedProblems(world, ['RECEIVER_SUSPECTED']))
  for (const node of currentNodes(world)) await checkSweep(world, node)
}

/** An operator does what the documents say of a `CONFLICT` and of a `STRAY`. Returns whether there was anything to do. */
function actAsOperator(world: World): boolean {
  const acts = [resolveConflicts(world), endStrays(world)]
  return acts.includes(true)
}

/**
 * An operator ends what stands in the way, as the documents say of a `CONFLICT`: the store has lost what the keeper knew
 * of it, for the second time within a day.
 */
function resolveConflicts(world: World): boolean {
  const inConflict = [...world.wanted.keys()].filter((username) =>
    world.nodes.some(({ process, keeper }) => {
      return process.run(() => keeper.subscription(username))?.state === 'conflict'
    }),
  )
  const users = inConflict.filter((username) => world.store.hasLost && world.rules.mayConflict(username))
  for (const { id } of users.flatMap((username) => world.service.activeFor(username).filter(isKept)))
    world.endByOperator(id)
  return users.length > 0
}

/** An operator ends what deliveries show as a `STRAY`: the store has lost it, and holds something else now. */
function endStrays(world: World): boolean {
  if (!world.store.hasLost) return false
  const strays = world.service
    .active()
    .filter((each) => isKept(each) && !world.store.holdsId(each.id))
    .filter((each) => !world.isAsConfigured(each) || isOfLeaver(world, each))
  for (const { id } of strays) world.endByOperator(id)
  return strays.length > 0
}

/** Whether its user left the roster while it was in the way as a `CONFLICT`: so its id cannot have been found out. */
function isOfLeaver({ problems, wanted }: World, { usernames, createdAtMs }: ModelSubscription): boolean {
  return usernames.every(
    (username) =>
      !wanted.has(username) &&
      problems.some(
        ({ atMs, what }) =>
          what.code === 'CONFLICT' && what.usernames?.includes(username) && atMs >= createdAtMs,
      ),
  )
}

function intervalOf(world: World): number {
  return world.options.keeper?.sweepIntervalMs ?? 0
}

/** 16/15 of an interval or 15 minutes, the longer, from the last fault: what was sent before may take effect late. */
async function settle(world: World): Promise<void> {
  const { maxRequestsPerSecond = 50 } = world.options.keeper ?? {}
  // The last requests take their time.
  const lastRequestsMs = 5_000 + (world.wanted.size * 4_000) / maxRequestsPerSecond
  // By rule 2 of the design, who meets a claim that was left behind waits for two minutes.
  const claimMs = world.store.hasClaims ? 2 * minute + 10_000 : 0
  const waitMs = Math.max((intervalOf(world) * 16) / 15, 15 * minute) + lastRequestsMs + claimMs
  let faultsEndedMs = world.time.nowMs
  while (world.time.nowMs < faultsEndedMs + waitMs) {
    await world.time.advance(faultsEndedMs + waitMs - world.time.nowMs)
    faultsEndedMs = Math.max(faultsEndedMs, world.lateEffectAtMs)
  }
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

/** However many processes there are: one request per user and interval. How old a proof of another is, a clock tells. */
function checkCosts(world: World, sent: number, quietMs: number): void {
  if (!haveSameClock(world)) return
  const most = world.wanted.size * (1 + quietMs / intervalOf(world))
  refuse(world, sent > most ? [`${sent} requests in a quiet time, and not ${most}`] : [])
}

/** A sweep finds everything as it should be, and says so. */
async function checkSweep(world: World, node: Node): Promise<void> {
  const { size } = world.wanted
  const { problems, ...report } = await world.settled(node, (keeper) => keeper.sweep())
  refuse(world, failuresIn(report))
  const right = { wanted: size, active: size, created: 0, restored: 0, removed: 0, failed: [] }
  const isRight = isDeepStrictEqual(report, right)
  refuse(
    world,
    isRight ? [] : [`a sweep in a quiet time reports ${JSON.stringify(report)} for ${size} users`],
  )
}

function failuresIn({ failed }: Pick<SweepReport, 'failed'>): string[] {
  return failed.map(({ username, error }) => `the sweep failed for ${username}: ${error}`)
}

/** Whatever was left behind: a program that does nothing but `sweep()` ends with everybody subscribed. */
async function checkLoneSweep(world: World): Promise<void> {
  for (const node of [...world.nodes]) world.kill(node)
  // Requests that are still under way may take effect until then.
  await world.time.advance(1_000)
  const node = world.start(world.configuration, false)
  const startedMs = world.time.nowMs
  const sweep = () => world.settled(node, (keeper) => keeper.sweep())
  let report = await sweep()
  const took = world.time.nowMs - startedMs
  if (actAsOperator(world)) report = await sweep()
  if ([...world.wanted.keys()].some((username) => mayWait(world, username))) {
    await world.time.advance(longestRestoreWaitMs)
    report = await sweep()
  }
  refuseViolations(world)
  refuse(world, [
    ...(took > 400_000 ? [`the sweep took ${seconds(took)}`] : []),
    ...failuresIn(report),
    ...problemsAtTheService(world),
    ...problemsInTheKeeper(world, node),
    ...gapsNotReported(world),
  ])
}

/** What is stored is enough for the next processes: nothing is created anew, and everything can be ended. */
async function checkRestart(world: World): Promise<void> {
  for (const node of [...world.nodes]) await world.stop(node)
  const { processes = 1 } = world.options
  for (let count = 0; count < processes; count++) world.start()
  await checkQuiet(world, 'after a restart', intervalOf(world) + minute)
  refuse(
    world,
    world.nodes.flatMap((node) => problemsInTheKeeper(world, node)),
  )
  const [node, ...others] = world.nodes
  for (const other of others) await world.stop(other)
  world.isSayingGoodbye = true
  const report = await world.settled(node as Node, (keeper) => keeper.unsubscribeAll())
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
  for (const { what } of world.problems) reached.add(what.resolved ? `${what.code} resolved` : what.code)
}

function refuseViolations(world: World): void {
  refuse(world, world.violations)
}

function refuse(world: World, problems: readonly string[]): void {
  if (problems.length === 0) return
  const story = process.env.KEEPER_STORY === undefined ? [] : storyOf(world)
  throw new Error([...problems.slice(0, 12), ...story].join('\n'))
}
