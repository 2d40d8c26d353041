/** What to do first: shown while there is nothing else, and by "Connect a client". */
import type { ComponentChildren, JSX } from 'preact'
import type { Pair, ServiceView } from '../views.js'
import { CopyButton } from './controls.js'
import { post } from './store.js'
import { Breakable } from './text.js'

/** The lines for `.env` and a first program: the same that the terminal prints. */
export function ConnectGuide({ service }: { service: ServiceView }): JSX.Element {
  const program = programFor(service)
  return (
    <ol class="guide">
      <li>
        <p>
          Put these lines into <code>.env</code>.
          {!isCertificateSaved(service) && (
            <>
              {' '}
              Save the <a href="ca.pem">certificate of the emulator's authority</a> beside it.
            </>
          )}
        </p>
        <Snippet
          label=".env"
          what="environment variables"
          copied={async () => linesOf((await post<ServiceView>('reveal-service', {})).variables)}
        >
          <Breakable text={linesOf(service.variables)} />
        </Snippet>
      </li>
      <li>
        <p>
          Subscribe in your app, and start it: <code>node --env-file=.env app.mjs</code>
        </p>
        <Snippet label="app.mjs" what="a first program" copied={program}>
          <Breakable text={program} />
        </Snippet>
      </li>
    </ol>
  )
}

function Snippet(props: {
  label: string
  what: string
  copied: string | (() => Promise<string>)
  children: ComponentChildren
}): JSX.Element {
  return (
    <div>
      <div class="section-head">
        <span class="muted mono">{props.label}</span>
        <CopyButton what={props.what} text={props.copied}>
          Copy
        </CopyButton>
      </div>
      <pre class="body">{props.children}</pre>
    </div>
  )
}

function linesOf(variables: readonly Pair[]): string {
  return variables.map(([name, value]) => `${name}=${value}`).join('\n')
}

/** The command line names a file that is there already; a name without a folder is that of the download. */
function isCertificateSaved({ variables }: ServiceView): boolean {
  return variables.some(([name, value]) => name === 'NOTIFICATION_CA_FILE' && /[/\\]/.test(value))
}

function programFor({ allowInsecureLoopback }: ServiceView): string {
  const options = allowInsecureLoopback ? '{ allowInsecureLoopback: true }' : ''
  const callbackUrl = allowInsecureLoopback
    ? 'http://127.0.0.1:3000/notifications'
    : 'https://localhost:8443/notifications'
  return `import { NotificationClient } from 'notification-subscriber'

const client = NotificationClient.fromEnv(${options})
const { subscriptionId } = await client.createSubscription({
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: '${callbackUrl}', // your receiver
  parameters: { token: process.env.CALLBACK_TOKEN },
  recreateIfExists: true,
})
console.log('Subscription', subscriptionId)`
}
