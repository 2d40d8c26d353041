/** What CHANGELOG.md says of releases (Keep a Changelog). */

interface Section {
  /** `Unreleased`, or a version. */
  readonly name: string
  readonly date: string | undefined
  readonly text: string
}

/** What is wrong with a changelog for the release of a version; nothing if the version can be released. */
export function problemsOf(changelog: string, version: string): string[] {
  const sections = sectionsOf(changelog)
  const released = sections.filter(({ name }) => name !== 'Unreleased')
  const problems: string[] = []
  const [newest] = released
  if (newest?.name !== version) {
    problems.push(`its newest version is ${newest?.name ?? 'none'}, and package.json says ${version}`)
  }
  for (const [index, { name, date, text }] of released.entries()) {
    if (date === undefined || new Date(`${date}T00:00Z`).toJSON()?.slice(0, 10) !== date) {
      problems.push(`${name} has no date: write ## [${name}] - YYYY-MM-DD`)
    }
    if (text === '') problems.push(`${name} says nothing`)
    const older = released[index + 1]
    if (older === undefined) continue
    if (compareVersions(name, older.name) <= 0) problems.push(`${name} stands above ${older.name}`)
    if (String(date) < String(older.date)) problems.push(`${name} is older than ${older.name}`)
  }
  return problems
}

/**
 * The section of a version, as the text of its release.
 *
 * @param filesUrl - where links to files of the repository lead, as relative ones lead nowhere on the page of a release
 */
export function notesOf(changelog: string, version: string, filesUrl?: string): string {
  const text = sectionsOf(changelog).find(({ name }) => name === version)?.text ?? ''
  const linked = text.replaceAll(/\]\((?!https?:)([^)]+)\)/g, (_, path) => `](${filesUrl}/${path})`)
  return `${filesUrl === undefined ? text : linked}\n`
}

/** The sections whose headings are of the second level, in their order. */
function sectionsOf(changelog: string): Section[] {
  return changelog
    .split(/^(?=## )/m)
    .slice(1)
    .map((section) => {
      const [heading = '', ...lines] = section.split('\n')
      const [, name = heading, date] = /^## \[([^\]]+)\](?: - (\S+))?$/.exec(heading) ?? []
      return { name, date, text: lines.join('\n').trim() }
    })
}

/** Whether the first version is the higher one (above 0) or the lower one (below 0). */
function compareVersions(one: string, other: string): number {
  return one.localeCompare(other, 'en', { numeric: true })
}
