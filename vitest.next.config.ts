import { defineConfig } from 'vitest/config'
import shared from './vitest.config.js'

// Apart from the other tests: Next.js weighs more than everything else that they install together.
export default defineConfig({
  ...shared,
  test: { include: ['test/integration/frameworks/next.spec.ts'], testTimeout: 120_000, hookTimeout: 900_000 },
})
