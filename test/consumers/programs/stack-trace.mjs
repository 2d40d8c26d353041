import { NotificationClient } from 'notification-subscriber'

try {
  new NotificationClient({})
} catch (error) {
  console.log(error.stack)
}
