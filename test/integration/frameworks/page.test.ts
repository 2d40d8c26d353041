/** The routes of docs/receiver.md, Where to put the route: each hands a typed notification to the handler. */
import { describe, test } from 'vitest'
import { expectTypedDelivery } from './support/expect-delivery.js'
import { pageServers } from './support/page-servers.js'

describe('the code block of the page', () => {
  test.each(Object.entries(pageServers))('for %s receives, and refuses a stranger', (_name, start) =>
    expectTypedDelivery(start),
  )
})
