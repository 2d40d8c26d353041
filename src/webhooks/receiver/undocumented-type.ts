/** Notices a handler that is registered for a name that looks like a misspelt one. */
import { documentedNotificationTypes } from '../../notification-types.js'

/** The documented notification type whose name is nearest to a text, if it is near enough to be meant. */
export function nearestDocumentedType(text: string): string | undefined {
  const [nearest] = documentedTypes()
    .map((type) => ({ type, distance: editDistance(text.toLowerCase(), type.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
  // So many letters that a name without its `Opened` or `Closed` is near, too; with more, it is another word.
  return nearest !== undefined && nearest.distance <= 0.4 * nearest.type.length ? nearest.type : undefined
}

/** Whether a type is in the service's documentation. A type that is not may be delivered all the same. */
export function isDocumentedType(type: string): boolean {
  return documentedTypes().includes(type)
}

function documentedTypes(): string[] {
  return Object.values(documentedNotificationTypes).flat()
}

/** How many letters have to be added, left out or replaced to make one text of the other (Levenshtein). */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [row, letter] of [...from].entries()) {
    const current = [row + 1]
    for (const [column, other] of [...to].entries()) {
      const replaced = (previous[column] ?? 0) + (letter === other ? 0 : 1)
      const added = (current[column] ?? 0) + 1
      const leftOut = (previous[column + 1] ?? 0) + 1
      current.push(Math.min(replaced, added, leftOut))
    }
    previous = current
  }
  return previous.at(-1) ?? 0
}
