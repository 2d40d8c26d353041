import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

// Apart from the other tests: what the package is tried with weighs hundreds of megabytes.
export default defineConfig({
  test: {
    include: ['test/consumers/*.spec.ts'],
    globalSetup: fileURLToPath(new URL('support/install.ts', import.meta.url)),
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
})
