import { fileURLToPath } from 'node:url'
import { defineConfig, mergeConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import shared from '../../vitest.config.js'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** One failing test settles a mutant, so the suites without servers go first. */
class QuickestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const cost = ({ moduleId }: TestSpecification) =>
      ['/test/auth/', '/test/integration/', '/test/emulator/', '/test/scenarios/'].findIndex((folder) =>
        moduleId.includes(folder),
      )
    return files.toSorted((a, b) => cost(a) - cost(b) || a.moduleId.localeCompare(b.moduleId))
  }
}

const config = defineConfig({
  resolve: { alias: [{ find: /^zod$/, replacement: here('zod.ts') }] },
  test: {
    // `MUTATION_TESTS=test/auth/**,test/scenarios/**` runs these tests alone, which takes minutes instead of hours.
    include: process.env.MUTATION_TESTS?.split(',') ?? ['test/**/*.test.ts'],
    exclude: [
      '**/node_modules/**',
      // About the text of the sources.
      'test/api/**',
      'test/api-descriptions/**',
      'test/documentation/**',
      // Run other programs, which run no mutant.
      'test/integration/forgotten-close.test.ts',
      'test/integration/{examples,opentelemetry}.test.ts',
      'test/webhooks/index.test.ts',
      // Random: a mutant that dies by luck is not one that a test kills.
      'test/scenarios/bad-input.test.ts',
      'test/**/*.property.test.ts',
      'test/keeper/random-sequences.test.ts',
      // Concurrent, so that it cannot be told which test reached which mutant; and slow.
      'test/integration/transports.test.ts',
      'test/scenarios/echoes.test.ts',
      // Say of the package what the rest says already, in each framework.
      'test/integration/frameworks/**',
    ],
    testNamePattern: /^(?!.* at random)/,
    setupFiles: [here('setup.ts')],
    // Every module is loaded once for all files: loading takes longer than most tests.
    isolate: false,
    // Tests that run at the same time would be credited with each other's mutants.
    maxConcurrency: 1,
    sequence: { sequencer: QuickestFirst },
    testTimeout: 60_000,
  },
})

export default mergeConfig({ resolve: shared.resolve }, config)
