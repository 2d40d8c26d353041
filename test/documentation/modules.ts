/** From a code block to a module: what it imports by itself, and nothing else but what is listed for it. */
import * as client from 'notification-subscriber'
import * as emulator from 'notification-subscriber/emulator'
import * as keeper from 'notification-subscriber/keeper'
import * as redis from 'notification-subscriber/redis'
import { DeliverySpool } from 'notification-subscriber/spool'
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

/** The name under which a block uses what it is given. */
export function usedName(given: string): string {
  return given.replace(/^type /, '').replace(/^\w+ as /, '')
}

export function uses(block: CodeBlock, name: string): boolean {
  return new RegExp(`\\b${name}\\b`).test(block.code)
}

function exportsUsedBy(block: CodeBlock): string[] {
  const entryPoints = {
    'notification-subscriber': client,
    'notification-subscriber/keeper': { SubscriptionKeeper: keeper.SubscriptionKeeper },
    'notification-subscriber/redis': redis,
    // Its errors are those of the first entry point.
    'notification-subscriber/spool': { DeliverySpool },
    'notification-subscriber/emulator': emulator,
  }
  return Object.entries(entryPoints).flatMap(([entryPoint, exported]) => {
    const names = Object.keys(exported).filter((name) => uses(block, name))
    return names.length === 0 ? [] : [`import { ${names.join(', ')} } from '${entryPoint}'`]
  })
}
