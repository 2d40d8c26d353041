import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (path: string) => fileURLToPath(new URL(`src/${path}`, import.meta.url))

export default defineConfig({
  resolve: {
    // Tests import the package by its public names and run on the sources.
    alias: [
      { find: /^notification-subscriber$/, replacement: source('index.ts') },
      { find: /^notification-subscriber\/webhooks$/, replacement: source('webhooks/index.ts') },
      { find: /^notification-subscriber\/emulator$/, replacement: source('emulator/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    typecheck: { enabled: true, include: ['test/**/*.test-d.ts'] },
    testTimeout: 30_000,
  },
})
