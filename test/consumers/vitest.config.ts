import { defineConfig } from 'vitest/config'

// Apart from the other tests: what the package is tried with weighs hundreds of megabytes.
export default defineConfig({
  test: {
    include: ['test/consumers/*.spec.ts'],
    globalSetup: 'test/consumers/support/install.ts',
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
})
