const { NotificationClient } = require('notification-subscriber')

NotificationClient.fromEnv()
