/** How the messages of errors name settings on the command line. */
import type { View } from '../shared/words.js'

export const onCommandLine: View = {
  // Each variable has the name of its option.
  setting: (option, value) => {
    const variable = `NOTIFICATION_${option.replace(/[A-Z]/g, '_$&').toUpperCase()}`
    return value === undefined ? variable : `${variable}=${value}`
  },
  auth: 'the variables of the credentials',
  trust: 'name a file with the certificate of its authority in NOTIFICATION_CA_FILE',
  recreateIfExists: '--recreate-if-exists',
  unsubscribeRoute: 'NOTIFICATION_UNSUBSCRIBE_ROUTE',
  updateRoute: 'NOTIFICATION_UPDATE_ROUTE',
  seeBody: '',
  orMoreTime: '',
  orShorterWaits: '',
}

/** `check` has no flag `--recreate-if-exists`: its clean-up recreates. */
export const inCheck: View = {
  ...onCommandLine,
  recreateIfExists: 'recreateIfExists=true (as the clean-up does)',
}
