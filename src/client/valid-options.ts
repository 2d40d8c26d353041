/** Checks a client's options. */
import { ConfigurationError } from '../errors.js'
import { validate } from '../shared/issues.js'
import type { NotificationClientOptions } from './client-options.js'
import { optionsSchema, type ValidClientOptions } from './option-schemas.js'

/** @throws `ConfigurationError` with every problem found; callers in JavaScript may pass anything */
export function validOptions(options: NotificationClientOptions): ValidClientOptions {
  return validate(
    optionsSchema(options),
    options,
    (issues, text) =>
      new ConfigurationError(`NotificationClient cannot be made from these options: ${text}.`, { issues }),
  )
}
