/** The subscriptions: active ones with their failures in a row, ended ones with the reason. */
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { clock } from '../../words.js'
import type { EndView, SubscriptionView } from '../views.js'
import { EndReason, Pips } from './entry.js'
import { count, nameList, shortUrl } from './format.js'
import { ListPane, Row } from './list.js'
import { type Filter, withWords, wordsOfSubscription } from './search.js'
import { placeNow, state } from './store.js'
import { Breakable } from './text.js'

type Shown = 'active' | 'failing' | 'ended'

/** An ended subscription has the event of its end. */
type Listed = SubscriptionView & { readonly end?: EndView }

/** More rows would be slow; the filter finds the others. */
const shownRows = 1_000

export function Subscriptions(): JSX.Element {
  const [filter, setFilter] = useState<Filter<Shown>>({ kind: 'active', text: '' })
  const { kind: shown, text } = filter
  const { subscriptions, entries } = state
  const lists: Readonly<Record<Shown, readonly Listed[]>> = useMemo(
    () => ({
      active: subscriptions,
      failing: subscriptions.filter(({ consecutiveFailures }) => consecutiveFailures > 0),
      ended: entries.flatMap((end) => (end.kind === 'ended' ? [{ ...end.subscription, end }] : [])),
    }),
    [subscriptions, entries],
  )
  const all = lists[shown]
  const items = useMemo(() => withWords(all, text, wordsOfSubscription), [all, text])
  const place = placeNow()
  const selectedId = place.view === 'subscription' ? place.id : undefined
  const tabStop = items.find(({ subscriptionId }) => subscriptionId === selectedId) ?? items[0]
  const label = (name: string, kind: Shown) => `${name} ${lists[kind].length.toLocaleString('en')}`
  return (
    <ListPane
      id="subscriptions"
      title="Subscriptions"
      kinds={[
        ['active', label('Active', 'active')],
        ['failing', label('Failing', 'failing')],
        ['ended', label('Ended', 'ended')],
      ]}
      filter={filter}
      onFilter={setFilter}
      hint="User, type, URL, #id"
      label={`Subscriptions, ${shown}`}
      rows={items.slice(0, shownRows).map((item) => (
        <li key={item.subscriptionId}>
          <Row
            place={{ view: 'subscription', id: item.subscriptionId }}
            isTabStop={item === tabStop}
            class="subscription"
            item={item.end ?? item}
            render={() => <Line subscription={item} />}
          />
        </li>
      ))}
      empty={<Nothing shown={shown} text={text} hasAny={all.length > 0} />}
      footer={
        items.length > shownRows
          ? `${count(items.length - shownRows, 'more', 'more')}: the filter finds them.`
          : undefined
      }
    />
  )
}

function Line({ subscription }: { subscription: Listed }): JSX.Element {
  const { subscriptionId, usernames, notificationTypes, callbackUrl, end } = subscription
  return (
    <>
      <span class="row-title">
        <Breakable text={nameList(usernames)} /> <span class="id">#{subscriptionId}</span>
      </span>
      {end === undefined && <Pips failures={subscription.consecutiveFailures} />}
      <span class="about">
        {end !== undefined && (
          <>
            {clock(end.at).slice(0, 8)} <EndReason end={end} />
            <br />
          </>
        )}
        <Breakable text={`${notificationTypes.join(', ')} → ${shortUrl(callbackUrl)}`} />
      </span>
    </>
  )
}

function Nothing(props: { shown: Shown; text: string; hasAny: boolean }): JSX.Element {
  const { shown, text, hasAny } = props
  if (state.service === undefined) return <p class="empty">Connecting to the emulator…</p>
  if (hasAny) return <p class="empty">No subscription matches “{text.trim()}”.</p>
  const sentences = {
    active: 'No subscription yet. One appears here as soon as a client creates it.',
    failing: 'The last callback of every subscription succeeded. Three failures in a row end a subscription.',
    ended: 'No subscription has ended. Ended subscriptions are listed here, with the reason.',
  }
  return <p class="empty">{sentences[shown]}</p>
}
