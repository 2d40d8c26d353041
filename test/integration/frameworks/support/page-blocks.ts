/** Runs the code blocks with routes to the letter: what people copy is what is tested. */
import type { RequestListener } from 'node:http'
import ts from 'typescript'
import { type CodeBlock, markdownBlocks } from '../../../documentation/code-blocks.js'

/** What a block gives to `createServer` of `node:http`. */
export const listeners: RequestListener[] = []

const http = { createServer: (listener: RequestListener) => ({ listen: () => listeners.push(listener) }) }

/** What the blocks import. Each is loaded when a block asks for it. */
const modules: Readonly<Record<string, () => Promise<object>>> = {
  express: () => import('express'),
  express4: () => import('express4'),
  h31: () => import('h31'),
  http: async () => http,
  receiver: () => import('notification-subscriber/webhooks'),
}

const moduleNames: Readonly<Record<string, keyof typeof modules>> = {
  express: 'express',
  'node:http': 'http',
  'notification-subscriber/webhooks': 'receiver',
}

const blocks = markdownBlocks('docs/receiver.md')

/** The block under a heading; with a number for one that is not the first: `… (2)`. */
export function pageBlock(heading: string): CodeBlock {
  const block = blocks.find(({ name }) => name.endsWith(`: ${heading}`))
  if (block === undefined) throw new Error(`There is no code block ${heading}`)
  return block
}

/**
 * Runs a block, and resolves with what it exports.
 *
 * @param given - what its reader has already, by name
 * @param replaced - modules to import in place of others: `{ express: 'express4' }`
 */
export async function runBlock(
  heading: string,
  given: Readonly<Record<string, unknown>> = {},
  replaced: Readonly<Record<string, keyof typeof modules>> = {},
): Promise<Record<string, unknown>> {
  const { outputText } = ts.transpileModule(pageBlock(heading).code, {
    compilerOptions: {
      module: ts.ModuleKind.CommonJS,
      target: ts.ScriptTarget.ES2023,
      esModuleInterop: true,
    },
  })
  const names = [...outputText.matchAll(/require\("([^"]+)"\)/g)].map(([, name = '']) => name)
  const loaded = new Map<string, object>()
  for (const name of names) {
    const load = modules[replaced[name] ?? moduleNames[name] ?? '']
    if (load === undefined) throw new Error(`The block imports ${name}, which this test does not know`)
    loaded.set(name, { __esModule: true, ...(await load()) })
  }
  const exports: Record<string, unknown> = {}
  const parameters = ['require', 'exports', ...Object.keys(given)]
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor
  await AsyncFunction(...parameters, outputText)(
    (name: string) => loaded.get(name),
    exports,
    ...Object.values(given),
  )
  return exports
}
