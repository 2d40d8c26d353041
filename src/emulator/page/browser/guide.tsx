/** What to do first: shown while there is nothing else, and by "Connect a client". */
import type { JSX } from 'preact'
import type { RevealedCredentials, ServiceView } from '../feed.js'
import { post } from './api.js'
import { CopyButton } from './copy-button.js'

const mask = '••••••••'

const program = `import { NotificationClient } from 'notification-subscriber'

const { CALLBACK_TOKEN: token = '' } = process.env // the secret of your receiver
const client = NotificationClient.fromEnv()
await client.createSubscription({
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: 'https://localhost:8443/notifications',
  parameters: { token },
})`

/** The lines for `.env` and a first program. */
export function ConnectGuide({ service }: { service: ServiceView }): JSX.Element {
  return (
    <ol class="guide">
      <li>
        <p>
          <span>
            Put this into <code>.env</code>, and save the <a href="ca.pem">certificate authority</a> beside
            it: the emulator's certificate is its own.
          </span>
        </p>
        <Snippet
          label="Environment variables"
          code={environment(service, mask)}
          copied={async () => {
            const { clientSecret } = await post<RevealedCredentials>('reveal', { credentials: true })
            return environment(service, clientSecret)
          }}
        />
      </li>
      <li>
        <p>
          <span>Subscribe. The receiver's address is your own program's.</span>
        </p>
        <Snippet label="A first program" code={program} copied={program} />
      </li>
    </ol>
  )
}

function Snippet(props: {
  label: string
  code: string
  copied: string | (() => Promise<string>)
}): JSX.Element {
  return (
    <div class="snippet">
      <CopyButton what={props.label.toLowerCase()} text={props.copied} label="Copy" />
      <pre>{props.code}</pre>
    </div>
  )
}

function environment({ baseUrl, authUrl, domain, clientId }: ServiceView, clientSecret: string): string {
  return Object.entries({
    NOTIFICATION_BASE_URL: baseUrl,
    NOTIFICATION_AUTH_URL: authUrl,
    NOTIFICATION_DOMAIN: domain,
    NOTIFICATION_CLIENT_ID: clientId,
    NOTIFICATION_CLIENT_SECRET: clientSecret,
    NOTIFICATION_CA_FILE: 'emulator-ca.pem',
  })
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')
}
