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

/** Why a value is probably misspelt: it is in quotes, which `docker --env-file` keeps, or has an invisible character. */
export function spellingProblem(value: string): string | undefined {
  const [invisible] = /[\p{Cc}\p{Cf}\u2028\u2029\u00a0]/u.exec(value) ?? []
  const code = invisible?.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
  if (code !== undefined) return `has the invisible character U+${code}: write the value anew`
  const isQuoted = /^(["'`]).*\1$|^[“‘„].*[”’“]$/.test(value)
  return isQuoted ? 'is in quotes, which are part of the value here: remove them' : undefined
}

export function nearestName(text: string, names: readonly string[]): string | undefined {
  const [nearest] = names
    .map((name) => ({ name, share: similarity(text, name) }))
    .sort((a, b) => b.share - a.share)
  return nearest?.name
}

/** The share of pairs of neighbouring letters that two texts have in common, in any case (Sørensen-Dice). */
function similarity(one: string, other: string): number {
  const pairs = pairsOf(one)
  const others = pairsOf(other)
  const common = [...pairs].filter((pair) => others.has(pair)).length
  return (2 * common) / (pairs.size + others.size)
}

function pairsOf(text: string): Set<string> {
  const lowerCase = ` ${text.toLowerCase()} `
  return new Set(Array.from(lowerCase, (_letter, index) => lowerCase.slice(index, index + 2)))
}
