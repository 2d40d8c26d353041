/** How the messages of errors name settings on the command line. */
import type { View } from '../shared/words.js'

export const onCommandLine: View = {
  auth: 'the variables of the credentials',
  authUrl: 'NOTIFICATION_AUTH_URL',
  baseUrl: 'NOTIFICATION_BASE_URL',
  clientId: 'NOTIFICATION_CLIENT_ID',
  clientSecret: 'NOTIFICATION_CLIENT_SECRET',
  domain: 'NOTIFICATION_DOMAIN',
  scope: 'NOTIFICATION_SCOPE',
  encodedCredentials: 'NOTIFICATION_CREDENTIALS_ENCODING=form-urlencoded',
  credentialsInBody: 'NOTIFICATION_CLIENT_AUTHENTICATION=body',
  trust: 'name a file with its certificate in NOTIFICATION_CA_FILE',
  recreateIfExists: '--recreate-if-exists',
  unsubscribeRoute: 'NOTIFICATION_UNSUBSCRIBE_ROUTE',
  updateRoute: 'NOTIFICATION_UPDATE_ROUTE',
  seeBody: '',
  orMoreTime: '',
  orShorterWaits: '',
}

/** `check` has no flag for it: its clean-up does it. */
export const inCheck: View = {
  ...onCommandLine,
  recreateIfExists: 'recreateIfExists=true (as the clean-up does)',
}
