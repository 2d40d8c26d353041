/** What the page in the browser may see and do: the public emulator, planned faults, and every change. */
import type { Change } from './activity/activity.js'
import type { Emulator } from './emulator.js'
import type { PlannedFault } from './service/faults.js'

export interface PageControls {
  /** The history, the subscriptions, and everything that can be asked for. */
  readonly emulator: Emulator
  /** The faults that are still to happen, in the order in which they were asked for. */
  plannedFaults(): readonly PlannedFault[]
  /** Calls `watcher` with each change before the next one can happen, until the returned function is called. */
  watch(watcher: (change: Change) => void): () => void
}
