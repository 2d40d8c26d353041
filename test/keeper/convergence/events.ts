/** The events of random sequences: what each may be, and what it does to a world. */
import fc from 'fast-check'
import { latestEffectMs, type NetworkOutcome, unknownStatuses } from './client.js'
import type { StoreMode } from './store.js'
import type { Fuse, VirtualProcess } from './virtual-process.js'
import {
  type Configuration,
  defaultConfiguration,
  minute,
  type Node,
  type RosterMode,
  type World,
} from './world.js'

interface Event {
  /** Plain data, which a counterexample shows. */
  readonly details: fc.Arbitrary<unknown>
  happen(world: World, details: unknown): void
}

function event<Details extends object>(
  details: { [Name in keyof Details]: fc.Arbitrary<Details[Name]> },
  happen: (world: World, details: Details) => void,
): Event {
  // A sequence gives each event what its own `details` made.
  return { details: fc.record(details), happen: (world, made) => happen(world, made as Details) }
}

/** Happens to one of the living processes. */
function processEvent<Details extends object>(
  details: { [Name in keyof Details]: fc.Arbitrary<Details[Name]> },
  happen: (world: World, node: Node, details: Details) => void,
): Event {
  return {
    details: fc.tuple(fc.nat(2), fc.record(details)),
    happen(world, made) {
      const [index, rest] = made as [number, Details]
      const node = world.node(index)
      if (node !== undefined) happen(world, node, rest)
    },
  }
}

export const pool = Array.from({ length: 16 }, (_, index) => `agent${index}`)
const user = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...pool.slice(0, 4)) },
  { weight: 1, arbitrary: fc.constantFrom(...pool) },
)
const forMs = fc.oneof(
  fc.integer({ min: 100, max: 5_000 }),
  fc.integer({ min: 5_000, max: 3 * minute }),
  fc.integer({ min: 3 * minute, max: 12 * minute }),
)
const restartAfterMs = fc.oneof(
  fc.integer({ min: 10, max: 2_000 }),
  fc.integer({ min: 2_000, max: 5 * minute }),
)
/** The process meets its fate at one of its next requests or operations of the store. */
const atOperation = {
  operations: fc.integer({ min: 1, max: 30 }),
  blows: fc.constantFrom<Fuse['blows']>('before', 'after'),
}

const effectMs = fc.oneof(fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 3_000, max: latestEffectMs }))
const perhapsEffectMs = fc.option(effectMs, { nil: undefined })
const retryAfterMs = fc.constantFrom(undefined, undefined, 3_600_000)

const kind = (...kinds: NetworkOutcome['kind'][]) => fc.constantFrom(...kinds)
const outage: fc.Arbitrary<NetworkOutcome> = fc.oneof(
  fc.record({ kind: kind('status'), status: fc.constantFrom(500, 503, 401, 403, 429), retryAfterMs }),
  fc.record({ kind: kind('unreachable', 'no-token', 'late') }),
)

/** What can become of a single request: most are lost. */
const outcome: fc.Arbitrary<NetworkOutcome> = fc.oneof(
  outage,
  fc.record({
    kind: kind('status'),
    status: fc.constantFrom(...unknownStatuses),
    effectAfterMs: perhapsEffectMs,
  }),
  fc.record({ kind: kind('reset', 'late'), effectAfterMs: perhapsEffectMs }),
  fc.tuple(effectMs, fc.integer({ min: 0, max: 20_000 })).map(([effectAfterMs, ms]) => ({
    kind: 'late' as const,
    effectAfterMs,
    answerAfterMs: effectAfterMs + ms,
  })),
  fc.record({ kind: kind('garbled') }),
)

/** No value of a keeper. */
const garbage = fc.constantFrom('garbage', '', 'null', '[]', '{}', '0', 'x'.repeat(100_000))

const elsewhere = { ...defaultConfiguration, callbackUrl: 'https://app.example.com/elsewhere' }
const configurations: readonly Configuration[] = [
  defaultConfiguration,
  elsewhere,
  { ...elsewhere, notificationTypes: ['conversation-ai'] },
  { ...defaultConfiguration, notificationTypes: ['behavioral', 'conversation-ai'] },
  { ...defaultConfiguration, parameters: { tenant: 's3cret-tenant' } },
  { ...defaultConfiguration, parameters: { token: 's3cret-token', tenant: 's3cret-tenant' } },
]

const userEvents = {
  wait: event({}, () => {}),
  want: event({ user }, (world, { user }) => world.want(user)),
  leave: event({ user }, (world, { user }) => {
    // An empty roster removes no user, so the last user stays.
    if (world.wanted.size > 1) world.wanted.delete(user)
  }),
  /** The service ends subscriptions without a word. */
  end: event({ users: fc.oneof(fc.tuple(user), fc.constant(pool)) }, (world, { users }) => world.end(users)),
  callbacks: event({ user, times: fc.integer({ min: 1, max: 3 }) }, (world, { user, times }) => {
    for (let count = 0; count < times; count++) world.callback(user)
  }),
  sweep: processEvent({}, sweep),
}

const serviceEvents = {
  outage: event({ outage, forMs }, (world, { outage, forMs }) => {
    world.outage = outage
    world.time.schedule(forMs, () => {
      if (world.outage === outage) world.outage = undefined
    })
  }),
  loseAnswers: event(
    { outcomes: fc.array(outcome, { minLength: 1, maxLength: 4 }) },
    (world, { outcomes }) => {
      world.nextOutcomes.push(...outcomes)
    },
  ),
  idsGivenAnew: event({}, (world) => {
    // Limits: with `report`, a subscription whose id two users have had stays in conflict.
    if (world.options.keeper?.existing === 'report') return
    world.areIdsGivenAnew = world.isUncertain = true
    world.service.beginAnew()
  }),
  refuseUser: event({ user, forMs }, (world, { user, forMs }) => {
    world.refused.add(user)
    world.time.schedule(forMs, () => world.refused.delete(user))
  }),
  breakReceiver: event({ forMs }, (world, { forMs }) => {
    world.isReceiverBroken = true
    world.time.schedule(forMs, () => {
      world.isReceiverBroken = false
    })
  }),
  /** Overlaps what the keeper wants, so that it can never be replaced. */
  anotherApp: event({ user }, (world, { user }) => occupy(world, [user, 'outsider'])),
  /** Looks like what the keeper wants. */
  twin: event({ user }, (world, { user }) => occupy(world, [user])),
}

const rosterMode = fc.constantFrom<RosterMode[]>(
  'slow',
  'empty',
  'throwing',
  'hanging',
  'unreadable',
  'halved',
)
const rosterEvents = {
  /** One process has the roster of now for a while: a cache, or a replica that lags. */
  rostersDiffer: processEvent({ forMs }, ({ oldRosters, time, wanted }, { process }, { forMs }) => {
    oldRosters.set(process, [...wanted.keys()])
    time.schedule(forMs, () => oldRosters.delete(process))
  }),
  roster: event({ mode: rosterMode, forMs }, (world, { mode, forMs }) => {
    world.rosterMode = mode
    world.time.schedule(forMs, () => {
      world.rosterMode = 'working'
    })
  }),
}

const key = fc.nat()
const storeMode = fc.constantFrom<StoreMode[]>('failing', 'hanging', 'slow', 'denied')
const storeEvents = {
  storeFails: event({ mode: storeMode, forMs }, setStoreMode),
  cutOff: processEvent({ forMs }, ({ store, time }, { process }, { forMs }) => {
    store.cutOff(process)
    time.schedule(forMs, () => store.reconnect(process))
  }),
  breakKey: event({ key, forMs }, ({ store, time }, { key, forMs }) => {
    store.breakKey(store.keys[key % store.keys.length] ?? '')
    time.schedule(forMs, () => store.repairKeys())
  }),
}

const dumpAgeMs = fc.oneof(fc.integer({ min: 1, max: 3_000 }), fc.integer({ min: 1_000, max: 40 * minute }))
const lossEvents = {
  forgettingStore: event({ mode: fc.constant<StoreMode>('forgetting'), forMs }, setStoreMode),
  emptyStore: event({}, ({ store }) => store.forget()),
  /** The primary dies and its replica lacks the last writes, or an older dump is restored. */
  rollBack: event({ dumpAgeMs }, ({ store }, { dumpAgeMs }) => store.rollBack(dumpAgeMs)),
  spoilKey: event({ key, text: fc.option(garbage, { nil: undefined }) }, ({ store }, { key, text }) =>
    store.replace(store.keys[key % store.keys.length] ?? '', text),
  ),
}

const processEvents = {
  crash: processEvent({ restartAfterMs }, (world, { process }, { restartAfterMs }) => {
    world.isUncertain = true
    process.kill()
    replaceMissing(world, restartAfterMs)
  }),
  crashLater: processEvent({ ...atOperation, restartAfterMs }, (world, { process }, details) => {
    world.isUncertain = true
    const happen = () => {
      process.kill()
      replaceMissing(world, details.restartAfterMs)
    }
    process.setFuse({ ...details, happen })
  }),
  /** A deployment of the same stops a process and starts the next. */
  stop: processEvent({ restartAfterMs }, (world, node, { restartAfterMs }) =>
    stop(world, node, restartAfterMs),
  ),
  /** The service accepts requests and answers none, and the process is told to stop. */
  stopWhileServiceHangs: processEvent({ forMs, restartAfterMs }, (world, node, { forMs, restartAfterMs }) => {
    world.outage = { kind: 'late' }
    world.time.schedule(forMs, () => {
      world.outage = undefined
    })
    world.time.schedule(world.random() * minute, () => stop(world, node, restartAfterMs))
  }),
  otherService: event({ forMs }, (world, { forMs }) => world.startElsewhere(forMs)),
  startAnother: event({}, (world) => {
    if (world.options.hasCompareAndSet && world.nodes.length < 3) world.start()
  }),
}

const how = fc.constantFrom('suspend' as const, 'sleep' as const)
const clockJumpMs = fc.constantFrom(-86_400_000, -600_000, -30_000, 30_000, 600_000, 86_400_000)
const clockEvents = {
  /** The process gets no processor time, as after SIGSTOP; or its machine sleeps. */
  standStill: processEvent({ ...atOperation, how, forMs }, (world, { process }, { how, forMs, ...fuse }) => {
    world.isUncertain = true
    const happen = () => {
      process[how]()
      world.time.schedule(forMs, () => process.resume())
    }
    process.setFuse({ ...fuse, happen })
  }),
  jumpClock: processEvent({ clockJumpMs }, (world, { process }, { clockJumpMs }) => {
    process.wallSkewMs += clockJumpMs
    world.haveClocksJumped = true
  }),
}

const configurationEvents = {
  rotate: event({}, rotate),
  deploy: event({ configuration: fc.constantFrom(...configurations) }, (world, { configuration }) =>
    deploy(world, configuration),
  ),
  /** A process with new values, or with old ones, is there for a while. */
  canary: event({ isOld: fc.boolean(), isKilled: fc.boolean(), forMs }, startCanary),
}

export const events = {
  ...userEvents,
  ...serviceEvents,
  ...rosterEvents,
  ...storeEvents,
  ...lossEvents,
  ...processEvents,
  ...clockEvents,
  ...configurationEvents,
}
export type EventName = keyof typeof events

const names = (group: Partial<typeof events>) => Object.keys(group) as EventName[]
const ordinary = names(userEvents)
const { crash, crashLater, startAnother } = processEvents
const { loseAnswers } = serviceEvents
const processes = names({ crash, crashLater, startAnother, loseAnswers })

/** What happens together in one sequence. Of all faults at once each would excuse what another one breaks. */
export const themes: Readonly<Record<string, readonly EventName[]>> = {
  nothing: ordinary,
  service: [...ordinary, ...names(serviceEvents), 'crash'],
  'lost answers': [...ordinary, ...processes],
  processes: [...ordinary, ...names(processEvents), 'standStill', 'loseAnswers'],
  clocks: [...ordinary, ...names(clockEvents), ...processes],
  'failing store': [...ordinary, ...names(storeEvents), ...processes],
  'lossy store': [...ordinary, ...names(lossEvents), ...processes],
  roster: [...ordinary, 'want', 'leave', 'roster', ...processes],
  configuration: [...ordinary, ...names(configurationEvents), ...processes],
  deployments: ['end', 'canary', 'deploy', 'rotate', 'startAnother', 'crash', 'stop', 'storeFails', 'outage'],
  services: [...ordinary, 'otherService', 'idsGivenAnew', ...processes],
  everything: names(events),
}

function setStoreMode({ store, time }: World, { mode, forMs }: { mode: StoreMode; forMs: number }): void {
  store.mode = mode
  time.schedule(forMs, () => {
    if (store.mode === mode) store.mode = 'working'
  })
}

/** Another app has a subscription with the keeper's URL. */
function occupy({ configuration, service }: World, usernames: readonly string[]): void {
  const request = { ...configuration, usernames, recreateIfExists: false, parameters: {} }
  service.create(request, 'another app')
}

/** A sweep ends in time, and counts every user who is wanted. */
export function sweep(world: World, { process, keeper }: Node): void {
  if (!process.isRunning) return
  let isSettled = false
  const settle = () => {
    isSettled = true
  }
  process.run(() => {
    const counted = keeper.sweep().then(({ wanted, active, removed, failed }) => {
      // A user who leaves meanwhile is wanted at the beginning, and removed in the end.
      const counts = `${active} active, ${removed} removed and ${failed.length} failed`
      if (active > wanted || active + removed + failed.length < wanted)
        world.violate(`${process.name}: a sweep of ${wanted} reports ${counts}`)
    })
    // It rejects if nothing could be read.
    counted.then(settle, settle)
    afterRunning(process, 10, () => {
      if (!isSettled) world.violate(`${process.name}: a sweep did not end in ten minutes`)
    })
  })
}

/** When a process has run for some minutes, those not counted in which it stood still. */
function afterRunning(process: VirtualProcess, minutes: number, check: () => void): void {
  if (minutes === 0) check()
  else process.setTimer(minute, () => afterRunning(process, minutes - 1, check))
}

/** As many processes run as there are to be, a while after one has died. */
export function replaceMissing(world: World, afterMs: number): void {
  const { processes = 1, hasCompareAndSet } = world.options
  world.time.schedule(afterMs, () => {
    const current = world.nodes.filter(({ configuration }) => configuration === world.configuration)
    const hasRoom = hasCompareAndSet || world.nodes.length === 0
    if (hasRoom && current.length < processes) world.start()
  })
}

export function stop(world: World, { process, keeper }: Node, restartAfterMs: number): void {
  if (!process.isRunning) return
  let hasEnded = false
  const stoppedMs = world.time.nowMs
  const end = () => {
    hasEnded = true
    world.stopping.delete(process)
    process.kill()
    replaceMissing(world, restartAfterMs)
  }
  world.stopping.add(process)
  process.setTimer(12_500, () => {
    if (!hasEnded && process.resumedMs < stoppedMs)
      world.violate(`${process.name}: stop() took over twelve seconds`)
  })
  process.run(() => {
    keeper.stop().then(end, () => world.violate(`${process.name}: stop() rejected`))
    afterRunning(process, 2, () => world.violate(`${process.name}: stop() did not end in two minutes`))
  })
}

function startCanary(
  world: World,
  { isOld, isKilled, forMs }: { isOld: boolean; isKilled: boolean; forMs: number },
): void {
  const { configuration, formerConfigurations } = world
  if (!world.options.hasCompareAndSet || configuration.parameters === undefined) return
  const renewed = { ...configuration, parameters: { ...configuration.parameters, token: world.newSecret() } }
  const node = world.start((isOld && formerConfigurations.at(-1)) || { ...renewed })
  world.isConfigurationNew = true
  world.time.schedule(forMs, () => {
    if (!isKilled && node.process.isRunning) stop(world, node, 0)
    else {
      world.isUncertain = true
      node.process.kill()
    }
  })
}

/** New values of all parameters. */
function rotate(world: World): void {
  const before = world.configuration
  if (before.parameters === undefined) return
  const renewed = Object.keys(before.parameters).map((name) => [name, world.newSecret()])
  deploy(world, { ...before, parameters: Object.fromEntries(renewed) })
}

/** A rolling deployment: the new process starts first, then the old ones stop. */
function deploy(world: World, wanted: Configuration): void {
  const { parameters: _, ...rest } = wanted
  const old = [...world.nodes]
  world.isConfigurationNew = true
  world.formerConfigurations.push(world.configuration)
  world.configuration = world.options.configuration?.parameters ? { ...wanted } : rest
  const isRolling = world.options.hasCompareAndSet === true
  if (isRolling || old.length === 0) world.start()
  for (const each of old)
    world.time.schedule(isRolling ? world.random() * 5 * minute : 0, () => stop(world, each, 100))
}
