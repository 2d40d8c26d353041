import * as main from 'notification-subscriber'
import * as emulator from 'notification-subscriber/emulator'
import * as webhooks from 'notification-subscriber/webhooks'
import { test } from 'vitest'
import story from './story.cjs'

test('the story', () => story(main, webhooks, emulator), 60_000)
