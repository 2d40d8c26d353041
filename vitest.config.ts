import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const source = (path: string) => fileURLToPath(new URL(`src/${path}`, import.meta.url))

/** Tests that need more than Node.js and the installed packages: each folder has a command of its own. */
const apart = ['redis', 'chaos', 'browser', 'keycloak']

/** What the documents and the public API promise, and programs as processes: slow, and rarely broken by a change. */
const documentation = [
  'test/documentation/**/*.test.ts',
  'test/api/**/*.test.ts',
  'test/api-descriptions/**/*.test.ts',
]

/** Tests that spend their time in waiting for processes of their own: `npm run test:processes`. */
const processes = [
  'test/cli/**/*.test.ts',
  'test/frameworks/examples.test.ts',
  'test/integration/{programs,worked-examples}.test.ts',
  'test/spool/{killed,loading,one-process,retries}.test.ts',
  'test/webhooks/no-code-generation.test.ts',
]

/** msw patches `fetch` for the whole process, which other tests of the same worker would notice. */
const isolated = ['test/emulator/msw.test.ts', 'test/subscriptions/create-subscription.test.ts']

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
    // What takes a second on a quiet machine takes many on a busy one: these end only what hangs.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // One second, the default, is little for a page that loads on a busy machine.
    expect: { poll: { timeout: 10_000 } },
    maxWorkers: 2,
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
            ...isolated,
            ...apart.map((folder) => `test/${folder}/**`),
            // The peers of the benchmark bring tests of their own.
            '**/node_modules/**',
          ],
          // One module graph for each worker instead of one for each file: half of the time went into imports.
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: 'isolated', include: isolated },
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
      ...apart.map((name) => ({
        extends: true as const,
        test: { name, include: [`test/${name}/**/*.test.ts`], testTimeout: 300_000, hookTimeout: 120_000 },
      })),
    ],
  },
})
