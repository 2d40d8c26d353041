/** Finds the name that was probably meant where another was written. */

/** The name that is nearest to a text, in upper or lower case, if it is near enough to be meant. */
export function nearestName(text: string, names: readonly string[]): string | undefined {
  const [nearest] = names
    .map((name) => ({ name, distance: editDistance(text.toLowerCase(), name.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
  // So many letters that a name without its `Opened`, `Closed` or unit is near, too; with more, it is another word.
  return nearest !== undefined && nearest.distance <= 0.4 * nearest.name.length ? nearest.name : undefined
}

/** ` (did you mean X?)`, to follow a text that is none of the names; nothing if no name is near. */
export function didYouMean(text: string, names: readonly string[], shown: (name: string) => string): string {
  const nearest = nearestName(text, names)
  return nearest === undefined ? '' : ` (did you mean ${shown(nearest)}?)`
}

/** How many letters have to be added, left out, replaced or swapped to make one text of the other. */
function editDistance(from: string, to: string): number {
  let beforePrevious: number[] = []
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [row, letter] of [...from].entries()) {
    const current = [row + 1]
    for (const [column, other] of [...to].entries()) {
      const replaced = (previous[column] ?? 0) + (letter === other ? 0 : 1)
      const added = (current[column] ?? 0) + 1
      const leftOut = (previous[column + 1] ?? 0) + 1
      const isSwap = letter === to[column - 1] && other === from[row - 1]
      const swapped = isSwap ? (beforePrevious[column - 1] ?? 0) + 1 : leftOut
      current.push(Math.min(replaced, added, leftOut, swapped))
    }
    beforePrevious = previous
    previous = current
  }
  return previous.at(-1) ?? 0
}
