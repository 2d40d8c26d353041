import { expect, test } from 'vitest'
import { withWords, wordsOfEntry, wordsOfSubscription } from '../../../../src/emulator/page/browser/search.js'

const ids = [3, 30, 13]

test('`#3` finds subscription 3, and neither 30 nor 13', () => {
  const subscriptions = ids.map((subscriptionId) => ({
    subscriptionId,
    ...{
      usernames: ['alice'],
      notificationTypes: ['behavioral'] as const,
      callbackUrl: 'https://a.example/',
    },
    ...{ parameters: [], consecutiveFailures: 0 },
  }))
  expect(withWords(subscriptions, 'ALICE #3', wordsOfSubscription)).toEqual([subscriptions[0]])
  const entries = subscriptions.map((subscription, id) => ({
    ...{ kind: 'ended' as const, id, at: 0, reason: 'by-request' as const },
    subscription,
  }))
  expect(withWords(entries, '#3', wordsOfEntry)).toEqual([entries[0]])
})
