const main = require('notification-subscriber')
const emulator = require('notification-subscriber/emulator')
const webhooks = require('notification-subscriber/webhooks')
const story = require('./story.cjs')

test('the story', () => story(main, webhooks, emulator), 60_000)
