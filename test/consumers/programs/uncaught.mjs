import { NotificationClient } from 'notification-subscriber'

NotificationClient.fromEnv()
