/** From a code block to a module: what it imports by itself, and nothing else but what is listed for it. */
import { entryPoints } from '../../scripts/entry-points.js'
import type { CodeBlock } from './code-blocks.js'
import { context } from './context.js'

/** What a block gets of `context.ts`, or `undefined` for a program, which gets nothing and is run. */
export function givenTo(block: CodeBlock): readonly string[] | undefined {
  return block.given ?? context[block.name]
}

/**
 * The block as the text of a module, on the same lines. A docstring stands in the documentation of the package,
 * so there its exports need no import; on a page they do.
 */
export function moduleOf(block: CodeBlock): string {
  const given = givenTo(block) ?? []
  return [
    'export {}',
    ...(given.length > 0 ? [`import { ${given.join(', ')} } from '../context.js'`] : []),
    ...(block.file.startsWith('src/') ? exportsUsedBy(block) : []),
    block.code,
  ].join('; ')
}

function uses(block: CodeBlock, name: string): boolean {
  return new RegExp(`\\b${name}\\b`).test(block.code)
}

/** What is exported twice is taken from the first entry point. */
const exported = new Map<string, string>()
for (const { name: entryPoint } of entryPoints) {
  for (const name of Object.keys(await import(entryPoint))) {
    if (!exported.has(name)) exported.set(name, entryPoint)
  }
}

function exportsUsedBy(block: CodeBlock): string[] {
  return [...exported]
    .filter(([name]) => uses(block, name))
    .map(([name, entryPoint]) => `import { ${name} } from '${entryPoint}'`)
}
