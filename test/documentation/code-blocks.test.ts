import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { type CodeBlock, docstringBlocks, markdownBlocks, pages, root } from './code-blocks.js'
import { moduleOf } from './modules.js'

const allBlocks = [...pages.flatMap(markdownBlocks), ...docstringBlocks()]
const blocks = allBlocks.filter(({ language }) => language === 'ts')

const mistaken: CodeBlock = {
  name: 'a block with two mistakes',
  file: 'README.md',
  line: 100,
  language: 'ts',
  code: "import { parseDelivery } from 'notification-subscriber'\n\nparseDelivery('').subscriptionID\nclient.close()\n",
}

describe('the code blocks of README.md, of docs/ and of docstrings', () => {
  test('are all found, and in a language that is checked', () => {
    expect(blocks.length).toBeGreaterThan(20)
    // What is neither a command nor output is code, and checked.
    const languages = allBlocks.map(({ language }) => language)
    expect(
      languages.filter(
        (language) => !['ts', 'sh', 'text', 'json', 'ini', 'yaml', 'dockerfile'].includes(language),
      ),
    ).toEqual([])
  })

  test('compile under the strictest settings of the project', () => {
    const problems = problemsIn([...blocks, mistaken])
    expect(problems.filter((problem) => !problem.includes(mistaken.name))).toEqual([])
    // Proof that a problem is found, at its line: README blocks get no name that is not given to them.
    expect(problems.filter((problem) => problem.includes(mistaken.name))).toEqual([
      expect.stringMatching(/^README\.md:103 .*'subscriptionID' does not exist/),
      expect.stringMatching(/^README\.md:104 .*Cannot find name 'client'/),
    ])
  })
})

/** What TypeScript says of the blocks, each a module of one program. */
function problemsIn(checked: readonly CodeBlock[]): string[] {
  const configFile = join(root, 'tsconfig.json')
  const { config } = ts.readConfigFile(configFile, ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root, undefined, configFile)
  const modules = new Map(
    checked.map((block, index) => [join(root, `test/documentation/blocks/${index}.ts`), block]),
  )
  const host = ts.createCompilerHost(options)
  const { fileExists, getSourceFile } = host
  host.fileExists = (path) => modules.has(path) || fileExists(path)
  host.getSourceFile = (path, target, ...rest) => {
    const block = modules.get(path)
    return block === undefined
      ? getSourceFile(path, target, ...rest)
      : ts.createSourceFile(path, moduleOf(block), target)
  }
  const program = ts.createProgram([...modules.keys()], options, host)
  expect(program.getOptionsDiagnostics()).toEqual([])
  return [...modules].flatMap(([path, block]) => {
    const source = program.getSourceFile(path)
    const diagnostics = [
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
    ]
    return diagnostics.map(({ messageText, start = 0 }) => {
      const line = block.line + 1 + (source?.getLineAndCharacterOfPosition(start).line ?? 0)
      return `${block.file}:${line} (${block.name}) ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
    })
  })
}
