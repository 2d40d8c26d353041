/** The subscriptions: active ones with their failures in a row, ended ones with the reason. */
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { SubscriptionView } from '../protocol.js'
import type { FeedState } from './connection.js'
import { FilterField, Segmented } from './controls.js'
import { clock, count, nameList, reasonInWords, shortUrl } from './format.js'
import { Pips } from './marks.js'
import { filterSubscriptions } from './search.js'
import { VirtualList } from './virtual-list.js'

const rowHeight = 60

type Shown = 'active' | 'failing' | 'ended'

export interface SubscriptionsProps {
  readonly state: FeedState
  readonly selectedId: number | undefined
  readonly onMove: (id: number) => void
  readonly onOpen: (id: number, by: 'pointer' | 'keyboard') => void
}

export function Subscriptions({ state, selectedId, onMove, onOpen }: SubscriptionsProps): JSX.Element {
  const [shown, setShown] = useState<Shown>('active')
  const [text, setText] = useState('')
  const { subscriptions, ended, endedCount } = state
  const failing = useMemo(
    () => subscriptions.filter(({ consecutiveFailures }) => consecutiveFailures > 0),
    [subscriptions],
  )
  const all = { active: subscriptions, failing, ended }[shown]
  const items = useMemo(() => filterSubscriptions(all, text), [all, text])
  return (
    <>
      <div class="pane-head">
        <h2>Subscriptions</h2>
        <Segmented
          name="subscriptions"
          legend="Which subscriptions"
          value={shown}
          onChange={setShown}
          options={[
            { value: 'active', label: `Active ${subscriptions.length.toLocaleString('en')}` },
            { value: 'failing', label: `Failing ${failing.length.toLocaleString('en')}` },
            { value: 'ended', label: `Ended ${endedCount.toLocaleString('en')}` },
          ]}
        />
        {(all.length > 0 || text !== '') && (
          <FilterField
            id="subscriptions-filter"
            label="Filter by user, type, URL, #id"
            value={text}
            onChange={setText}
          />
        )}
      </div>
      {items.length === 0 ? (
        <Nothing state={state} shown={shown} text={text} hasAny={all.length > 0} />
      ) : (
        <VirtualList
          id="subscriptions-list"
          label={`Subscriptions, ${shown}`}
          items={items}
          rowHeight={rowHeight}
          keyOf={({ subscriptionId }) => subscriptionId}
          selectedKey={selectedId}
          onMove={({ subscriptionId }) => onMove(subscriptionId)}
          onOpen={({ subscriptionId }, by) => onOpen(subscriptionId, by)}
          renderRow={(subscription) => <Row subscription={subscription} />}
          classOf={({ ended, consecutiveFailures }) =>
            ended === undefined && consecutiveFailures > 0 ? 'subscription failing' : 'subscription'
          }
          footer={<Forgotten shown={shown} number={endedCount - ended.length} />}
          resetKey={`${shown} ${text}`}
        />
      )}
    </>
  )
}

function Row({ subscription }: { subscription: SubscriptionView }): JSX.Element {
  const { subscriptionId, usernames, notificationTypes, callbackUrl, ended } = subscription
  return (
    <>
      <span class="row-line">
        <span class="row-title">{nameList(usernames)}</span>
        <span class="id">#{subscriptionId}</span>
        {ended === undefined && <Pips failures={subscription.consecutiveFailures} />}
      </span>
      <span class="row-line muted">
        {ended === undefined ? (
          <span class="ellipsis">
            {notificationTypes.join(', ')} → {shortUrl(callbackUrl)}
          </span>
        ) : (
          <span class="ellipsis">
            <span class="mono">{clock(ended.at)}</span> {reasonInWords(ended.reason)}
          </span>
        )}
      </span>
    </>
  )
}

function Nothing(props: { state: FeedState; shown: Shown; text: string; hasAny: boolean }): JSX.Element {
  const { state, shown, text, hasAny } = props
  if (state.service === undefined) return <p class="empty">Connecting to the emulator…</p>
  if (hasAny) return <p class="empty">No subscription matches “{text.trim()}”.</p>
  const sentences = {
    active: 'No subscription yet. One appears here as soon as a client creates it.',
    failing: 'The last callback of every subscription succeeded. Three failures in a row end a subscription.',
    ended: 'No subscription has ended. Ended subscriptions are listed here, with the reason.',
  }
  return <p class="empty">{sentences[shown]}</p>
}

function Forgotten({ shown, number }: { shown: Shown; number: number }): JSX.Element | undefined {
  if (shown !== 'ended' || number <= 0) return undefined
  return <p class="forgotten">{count(number, 'earlier one')} forgotten: the last 1,000 are kept.</p>
}
