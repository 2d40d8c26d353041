const main = require('notification-subscriber')
const emulator = require('notification-subscriber/emulator')
const webhooks = require('notification-subscriber/webhooks')
const story = require('./story.cjs')

story(main, webhooks, emulator)
