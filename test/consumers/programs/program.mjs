import * as main from 'notification-subscriber'
import * as emulator from 'notification-subscriber/emulator'
import * as webhooks from 'notification-subscriber/webhooks'
import story from './story.cjs'

story(main, webhooks, emulator)
