/** A subscription: what it asks for, how it is doing, and what can be done to it. */
import type { JSX } from 'preact'
import type { RevealedSubscription, SubscriptionView } from '../feed.js'
import { ActionButton } from './action-button.js'
import type { DetailsProps } from './details.js'
import { DetailsHeading, Pairs } from './entry-details.js'
import { dateAndTime, nameList, reasonInWords } from './format.js'
import { Problem } from './problem.js'
import { Pips } from './subscriptions.js'
import { useReveal } from './use-reveal.js'

const shownUsers = 50

export function SubscriptionDetails(props: DetailsProps & { subscription: SubscriptionView }): JSX.Element {
  const { subscription, onCompose, onFilter } = props
  const { subscriptionId, usernames, notificationTypes, ended } = subscription
  const { revealed, problem, reveal } = useReveal<RevealedSubscription>({ subscriptionId })
  const { callbackUrl, parameters } = revealed ?? subscription
  const [username] = usernames
  const [category] = notificationTypes

  return (
    <>
      <DetailsHeading>Subscription #{subscriptionId}</DetailsHeading>
      {ended !== undefined && (
        <p class="ended-reason">
          Ended at {dateAndTime(ended.at)}: {reasonInWords(ended.reason)}.
        </p>
      )}
      <dl class="facts">
        <dt>Callback URL</dt>
        <dd class="mono">{callbackUrl}</dd>
        <dt>Types</dt>
        <dd>{notificationTypes.join(', ')}</dd>
        <dt>Users</dt>
        <dd>{nameList(usernames, shownUsers)}</dd>
        {ended === undefined && (
          <>
            <dt>Failures</dt>
            <dd class="with-pips">
              <Pips failures={subscription.consecutiveFailures} /> {subscription.consecutiveFailures} of 3 in
              a row
            </dd>
          </>
        )}
      </dl>
      <div class="buttons">
        {ended === undefined && (
          <button
            type="button"
            class="button primary"
            onClick={() => onCompose({ ...(username && { username }), ...(category && { category }) })}
          >
            Send to it…
          </button>
        )}
        <button type="button" class="button" onClick={() => onFilter(`#${subscriptionId}`)}>
          Its time line
        </button>
        {parameters.length > 0 && ended === undefined && revealed === undefined && (
          <button type="button" class="button" onClick={reveal}>
            Reveal secrets
          </button>
        )}
      </div>
      <Problem text={problem} />
      <h3>Parameters, sent as headers of each callback</h3>
      <Pairs pairs={parameters.map(({ name, value }) => [name, value])} />
      {ended === undefined && (
        <>
          <h3>Try what would happen</h3>
          <div class="buttons">
            <ActionButton
              action="fault"
              body={{ operation: 'callback', fault: { status: 503 }, subscriptionId }}
              done="Planned"
              icon="bolt"
            >
              Fail its next callback
            </ActionButton>
            <ActionButton action="end" body={{ subscriptionId }} done="Ended" icon="ended" isDangerous>
              End it
            </ActionButton>
          </div>
        </>
      )}
    </>
  )
}
