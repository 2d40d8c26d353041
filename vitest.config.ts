import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (path: string) => fileURLToPath(new URL(`src/${path}`, import.meta.url))

/** Tests that need more than Node.js and the installed packages: each folder has a command of its own. */
const apart = ['redis', 'chaos', 'browser', 'keycloak']

export default defineConfig({
  resolve: {
    // Tests import the package by its public names and run on the sources.
    alias: [
      { find: /^notification-subscriber$/, replacement: source('index.ts') },
      { find: /^notification-subscriber\/webhooks$/, replacement: source('webhooks/index.ts') },
      { find: /^notification-subscriber\/spool$/, replacement: source('spool/index.ts') },
      { find: /^notification-subscriber\/redis$/, replacement: source('stores/redis.ts') },
      { find: /^notification-subscriber\/emulator$/, replacement: source('emulator/index.ts') },
    ],
  },
  test: {
    testTimeout: 30_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'main',
          include: ['test/**/*.test.ts'],
          exclude: apart.map((folder) => `test/${folder}/**`),
          typecheck: { enabled: true, include: ['test/**/*.test-d.ts'] },
        },
      },
      ...apart.map((name) => ({
        extends: true as const,
        test: { name, include: [`test/${name}/**/*.test.ts`], testTimeout: 300_000, hookTimeout: 120_000 },
      })),
    ],
  },
})
