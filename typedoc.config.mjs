import { OptionDefaults } from 'typedoc'
import { entryPoints } from './scripts/entry-points.ts'

/** @type {Partial<import('typedoc').TypeDocOptions>} */
export default {
  name: 'notification-subscriber',
  entryPoints: entryPoints.map(({ source }) => source),
  readme: 'README.md',
  out: 'site',
  excludeInternal: true,
  excludePrivate: true,
  excludeExternals: true,
  validation: {
    notExported: true,
    invalidLink: true,
    invalidPath: true,
    rewrittenLink: true,
    notDocumented: true,
  },
  intentionallyNotExported: [
    'DocumentedPayload',
    'Fields',
    'NoPayloadSchemas',
    'NodeConnection',
    'NodeServer',
    'NotificationOfAnyType',
    'NotificationOfEach',
    'OptionalOptions',
    'SamplePayload',
  ],
  highlightLanguages: [...OptionDefaults.highlightLanguages, 'dockerfile', 'ini'],
  treatWarningsAsErrors: true,
  // No properties: a docstring that repeats the name of a property says nothing.
  requiredToBeDocumented: ['Variable', 'Function', 'Class', 'Interface', 'Method', 'Accessor', 'TypeAlias'],
  disableSources: true,
  includeVersion: true,
  projectDocuments: ['docs/*.md', 'examples/README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  plugin: ['./scripts/site/pages.mjs'],
  customCss: 'scripts/site/style.css',
  searchInDocuments: true,
  searchInComments: false,
  headings: { readme: false },
  navigation: { includeGroups: true, includeFolders: false, excludeReferences: true },
  groupOrder: ['Guide', 'Modules', 'Project', '*'],
  sort: ['documents-first', 'source-order'],
  navigationLeaves: entryPoints.map(({ name }) => name),
}
