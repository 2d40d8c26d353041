import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import shared from '../../vitest.config.js'

// Apart from the other tests: what the package is tried with weighs hundreds of megabytes.
export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'consumers',
          include: ['test/consumers/*.spec.ts'],
          globalSetup: fileURLToPath(new URL('support/install.ts', import.meta.url)),
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
      {
        ...(shared.resolve && { resolve: shared.resolve }),
        test: {
          name: 'Next.js',
          include: ['test/integration/frameworks/next.spec.ts'],
          testTimeout: 120_000,
          hookTimeout: 900_000,
        },
      },
    ],
  },
})
