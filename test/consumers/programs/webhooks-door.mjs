export * from 'notification-subscriber/webhooks'
