const { NotificationClient } = require('notification-subscriber')

try {
  new NotificationClient({})
} catch (error) {
  console.log(error.stack)
}
