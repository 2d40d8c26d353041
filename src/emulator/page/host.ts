import type { Callbacks } from '../callbacks.js'
import type { EmulatorParts } from '../service/service.js'
import type { Secrets } from './secrets.js'

/** What the page's server uses of an emulator. */
export interface PageHost extends EmulatorParts {
  readonly callbacks: Callbacks
  readonly baseUrl: string
  /** Certificate in PEM of the authority. */
  readonly ca: string
  /** The environment variables of a client, and of a receiver. */
  readonly variables: Readonly<Record<string, string>>
  /** The file that has these variables, if there is one. */
  readonly envFile: string | undefined
}

/** What the address of the page says, and the emulator that is shown. */
export interface PageView {
  readonly host: PageHost
  /** What is open beside the lists. */
  readonly open: string
  readonly secrets: Secrets
  /** The address of the page with other values in its query; an empty one is left out. */
  linkTo(changes: Readonly<Record<string, string>>): string
}
