/** Finds probable mistakes in values and names: never filled in, in quotes, or misspelt. */

/**
 * A value that nothing has filled in: a variable that is not set, a template, a reference to a vault, or what dotenvx, sops or
 * the like has not decrypted; but no JSON or XML.
 */
const placeholder =
  /^(?:\w+ )?(?:undefined|null|\[object \w+\]|<[^/]+>|\$?\{[^"]+\}|\$\(.*\)|%\w+%|(?:@Microsoft\.KeyVault\(|op:\/\/|arn:aws|vault:|ref\+|encrypted:|ENC[([]).*)$/i

/** Why a value cannot be meant: it is a placeholder. */
export function placeholderProblem(value: string): string | undefined {
  return placeholder.test(value) ? 'is a placeholder, which was never replaced by its value' : undefined
}

/** A `${…}`, `{{…}}`, `{word}` or `<word>` in an address; the URL parser writes a brace in a path as `%7B`. */
const template = /\$(?:\{|%7B)|(?:\{|%7B){2}|^[^?#]*(?:\{[\w.-]+\}|<[\w.-]+>)/i

/** Why an address cannot be meant: a part of it is a placeholder. */
export function placeholderInAddress(address: string): string | undefined {
  return template.test(address) ? 'contains a placeholder, which was never filled in' : undefined
}

/** Why a value is probably misspelt: it is in quotes, which `docker --env-file` keeps, or has an invisible character. */
export function spellingProblem(value: string): string | undefined {
  const [invisible] = /[\p{Cc}\p{Cf}\u2028\u2029\u00a0]/u.exec(value) ?? []
  const code = invisible?.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
  if (code !== undefined) return `has the invisible character U+${code}: write the value anew`
  const isQuoted = /^(["'`]).*\1$|^[“‘„].*[”’“]$/.test(value)
  return isQuoted ? 'is in quotes, which are part of the value here: remove them' : undefined
}

/**
 * The most similar name, in any case, if it is similar enough.
 *
 * @param farthest - the largest share of a name that may differ. By default enough for a missing `Opened`, `Closed` or
 * unit, not for another word
 */
export function nearestName(text: string, names: readonly string[], farthest = 0.4): string | undefined {
  const [nearest] = names
    .filter((name) => Math.abs(name.length - text.length) <= farthest * name.length)
    .map((name) => ({ name, distance: editDistance(text.toLowerCase(), name.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
  return nearest !== undefined && nearest.distance <= farthest * nearest.name.length
    ? nearest.name
    : undefined
}

/** ` (did you mean X?)`, to append to an unknown name; empty if no name is similar. */
export function didYouMean(text: string, names: readonly string[], shown: (name: string) => string): string {
  const nearest = nearestName(text, names)
  return nearest === undefined ? '' : ` (did you mean ${shown(nearest)}?)`
}

/** How many letters must be added, removed or replaced to change one text into the other. */
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
