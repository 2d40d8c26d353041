import { describe, expect, test } from 'vitest'
import { notesOf, problemsOf } from '../../scripts/release/changelog.js'

const changelog = `# Changelog

## [Unreleased]

## [0.10.0] - 2026-02-01

One sentence.

### Added

- A [page](docs/page.md#part), and [another](https://example.com/).

## [0.9.1] - 2026-01-31

### Fixed

- That.
`

test('the topmost version, with a date and a text, can be released', () => {
  expect(problemsOf(changelog, '0.10.0')).toEqual([])
})

describe('a changelog is refused', () => {
  test.each<[string, [string, string], RegExp]>([
    ['whose newest version is another one', ['0.10.0', '0.11.0'], /newest version is 0\.11\.0/],
    ['with a version that has no date', [' - 2026-02-01', ''], /0\.10\.0 has no date/],
    ['with a day that does not exist', ['2026-02-01', '2026-02-30'], /0\.10\.0 has no date/],
    ['with a version that says nothing', ['### Fixed\n\n- That.', ''], /0\.9\.1 says nothing/],
    ['with versions in a wrong order', ['0.9.1', '0.11.0'], /0\.10\.0 stands above 0\.11\.0/],
    ['with dates in a wrong order', ['2026-01-31', '2026-02-02'], /0\.10\.0 is older than 0\.9\.1/],
  ])('%s', (_what, [old, changed], problem) => {
    expect(problemsOf(changelog.replace(old, changed), '0.10.0')).toEqual([expect.stringMatching(problem)])
  })

  test('that has no version', () => {
    expect(problemsOf('# Changelog\n\n## [Unreleased]\n', '0.1.0')).toEqual([
      'its newest version is none, and package.json says 0.1.0',
    ])
  })
})

describe('the notes of a version', () => {
  test('are its section, without the heading', () => {
    expect(notesOf(changelog, '0.9.1')).toBe('### Fixed\n\n- That.\n')
    expect(notesOf(changelog, '0.10.0')).toContain('(docs/page.md#part)')
  })

  test('link to the files of the repository where that is known', () => {
    expect(notesOf(changelog, '0.10.0', 'https://example.com/blob/v1')).toContain(
      '- A [page](https://example.com/blob/v1/docs/page.md#part), and [another](https://example.com/).',
    )
  })
})
