import { Configuration } from './configuration.js'
import { Deliveries } from './deliveries.js'
import { IndexOfNames, KeeperStore } from './keeper-store.js'
import { Limiter } from './limiter.js'
import type { ResolvedOptions } from './options.js'
import { Processes } from './processes.js'
import { Reporter } from './reporter.js'
import { RosterReader } from './roster.js'
import { Routes } from './routes.js'
import { Users } from './users.js'

export type Parts = ReturnType<typeof partsOf>

/** Makes the parts of a keeper. Each class names those that it needs. */
export function partsOf(options: ResolvedOptions) {
  const reporter = new Reporter(options)
  const { problems } = reporter
  const store = new KeeperStore(options.store, options.name, options.client.service, problems)
  const processes = new Processes(store)
  const index = new IndexOfNames(store)
  const users = new Users(store, index, processes, problems, options.sweepIntervalMs)
  const configuration = new Configuration(options, store, processes, users, problems)
  const limiter = new Limiter(options, store, processes, configuration, problems)
  const roster = new RosterReader(options, index, users, problems)
  const deliveries = new Deliveries(options, users, problems)
  const routes = new Routes(problems)
  return { configuration, deliveries, limiter, options, processes, reporter, roster, routes, store, users }
}
