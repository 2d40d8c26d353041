import { defineConfig } from 'vitest/config'
import shared from '../../vitest.config.js'

// The suites that take long or run other processes say nothing of a mutant that the rest does not.
export default defineConfig({
  ...shared,
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [
      'test/faults/random-sequences.test.ts',
      'test/faults/dispatchers.test.ts',
      'test/integration/programs.test.ts',
      'test/integration/worked-examples.test.ts',
      'test/frameworks/**',
    ],
    testTimeout: 30_000,
  },
})
