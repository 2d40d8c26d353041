/** Notices a handler that is registered for a name that looks like a misspelt one. */
import { documentedNotificationTypes, notificationTypes } from '../../notification-types.js'
import { nearestName } from '../../shared/nearest-name.js'

/** The documented notification type whose name is nearest to a text, if it is near enough to be meant. */
export function nearestDocumentedType(text: string): string | undefined {
  return nearestName(text, documentedTypes())
}

/** Whether a type is in the service's documentation. A type that is not may be delivered all the same. */
export function isDocumentedType(type: string): boolean {
  return documentedTypes().includes(type)
}

/** What is delivered for a type that can be subscribed to; nothing for any other text. */
export function typesBroughtBy(text: string): readonly string[] | undefined {
  const subscribable = notificationTypes.find((type) => type === text)
  return subscribable && documentedNotificationTypes[subscribable]
}

function documentedTypes(): string[] {
  return Object.values(documentedNotificationTypes).flat()
}
