/** The parts of a keeper that need no configuration, and its options. */
import { CircuitBreaker, Limiter, RouteTrust } from './loop/outage-and-limits.js'
import { Schedule } from './loop/schedule.js'
import { IndexOfNames } from './memory/index-of-names.js'
import { KeeperStore } from './memory/keeper-store.js'
import { Processes } from './memory/processes.js'
import { resolveOptions } from './options.js'
import { Reporter } from './reporter.js'
import type { SubscriptionKeeperOptions } from './types.js'

/** @throws `ConfigurationError` that lists every problem of the options */
export function basicsOf(options: SubscriptionKeeperOptions) {
  const resolved = resolveOptions(options)
  const reporter = new Reporter(resolved)
  const { problems } = reporter
  const schedule = new Schedule(resolved.sweepIntervalMs)
  const store = new KeeperStore(resolved.store, resolved.name, resolved.client.service, problems)
  const processes = new Processes(store)
  const index = new IndexOfNames(store)
  const circuit = new CircuitBreaker(problems)
  const limiter = new Limiter(circuit, processes, resolved)
  const routes = new RouteTrust(problems)
  return { ...resolved, reporter, problems, schedule, store, processes, index, circuit, limiter, routes }
}

export type Basics = Readonly<ReturnType<typeof basicsOf>>
