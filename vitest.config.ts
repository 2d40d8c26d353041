import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { entryPoints } from './scripts/entry-points.js'

/** Tests that need more than Node.js and the installed packages: Redis, Chromium, Keycloak, Python, the built package. */
const integration = [
  'test/integration/{redis,chaos,browser,keycloak,site}/**/*.test.ts',
  'test/integration/{readme,examples,opentelemetry,independent-service,restarts}.test.ts',
]

/** Real servers and frameworks. */
const servers = ['test/integration/**/*.test.ts']

/** What the documents, SECURITY.md and the public API promise: slow, and rarely broken by a change. */
const documentation = [
  'test/documentation/**/*.test.ts',
  'test/api/**/*.test.ts',
  'test/api-descriptions/**/*.test.ts',
  'test/scenarios/linear-time.test.ts',
]

/** Tests that spend their time in waiting: for processes of their own, or for a disk. */
const processes = [
  'test/cli/**/*.test.ts',
  'test/spool/{killed,folder,lock,full-disk,deliverer,poison}.test.ts',
]

/** Files that take longest in their project, so that none of them runs alone in the end. */
const longest = [
  '/test/integration/independent-service.',
  '/test/integration/examples.',
  '/test/integration/chaos/',
  '/test/integration/redis/',
  '/test/integration/keycloak/',
  '/test/integration/site/',
  '/test/integration/browser/page.',
  '/test/scenarios/linear-time.',
  '/test/spool/promises.',
  '/test/spool/spool-store.',
  '/test/keeper/random-sequences.',
  '/test/scenarios/random-sequences.',
  '/test/keeper/processes.',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const rank = ({ moduleId }: TestSpecification) => {
      const index = longest.findIndex((part) => moduleId.includes(part))
      return index === -1 ? longest.length : index
    }
    return sorted.sort((one, other) => rank(one) - rank(other))
  }
}

export default defineConfig({
  resolve: {
    // Tests import the package by its public names and run on the sources.
    alias: entryPoints.map(({ name, source }) => ({
      find: new RegExp(`^${name}$`),
      replacement: fileURLToPath(new URL(source, import.meta.url)),
    })),
  },
  test: {
    setupFiles: 'test/support/random-runs.ts',
    // What takes a second on a quiet machine takes many on a busy one: these end only what hangs.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // One second, the default, is little for a page that loads on a busy machine.
    expect: { poll: { timeout: 10_000 } },
    // A passing run prints the runner's summary: what passing tests log, and a line per file, is left out.
    silent: 'passed-only',
    execArgv: ['--no-warnings'],
    reporters: ['minimal'],
    // One more than the cores of a small machine: tests wait for a third of their time, for timers and for disks.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Of tests that run at the same time most wait. Set here, because the first file of a worker decides for all of its.
    maxConcurrency: 24,
    projects: [
      {
        extends: true,
        test: {
          name: 'main',
          include: ['test/**/*.test.ts'],
          exclude: [
            ...documentation,
            ...processes,
            ...servers,
            'test/slow/**',
            // The peers of the benchmark bring tests of their own.
            '**/node_modules/**',
          ],
          // One module graph for each worker instead of one for each file: half of the time went into imports.
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: 'processes', include: processes, testTimeout: 240_000 },
      },
      {
        extends: true,
        test: {
          name: 'types',
          include: [],
          typecheck: {
            enabled: true,
            only: true,
            include: ['test/**/*.test-d.ts'],
            tsconfig: 'test/types/tsconfig.json',
          },
        },
      },
      {
        extends: true,
        test: { name: 'documentation', include: documentation, testTimeout: 240_000 },
      },
      {
        extends: true,
        test: {
          name: 'servers',
          include: servers,
          exclude: [...integration, '**/node_modules/**'],
          isolate: false,
          testTimeout: 240_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: integration,
          testTimeout: 300_000,
          hookTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: { name: 'slow', include: ['test/slow/**/*.test.ts'] },
      },
    ],
  },
})
