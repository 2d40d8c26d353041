/** What the page in the browser may see and do: more than the public emulator, and nothing that it has to guess. */
import type { Change } from './activity/activity.js'
import type { Emulator } from './emulator.js'
import type { PlannedFault } from './service/faults.js'

export interface PageControls {
  /** The history, the subscriptions, and everything that can be asked for. */
  readonly emulator: Emulator
  /** The faults that are still to happen, in the order in which they were asked for. */
  plannedFaults(): readonly PlannedFault[]
  /** Every change from now on, told of before the next one can happen; the function that is returned stops it. */
  watch(watcher: (change: Change) => void): () => void
}
