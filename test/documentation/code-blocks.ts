/** The code blocks that people copy: those of the README, of the pages in docs/ and of docstrings. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface CodeBlock {
  /** File, then the heading or the name that the block belongs to, with a number from the second on. */
  readonly name: string
  readonly file: string
  /** Line of the fence that opens it, from 1. */
  readonly line: number
  readonly language: string
  readonly code: string
  /**
   * What a page says in a comment above the block that its reader has already: `<!-- given: client, wanted -->`, with
   * names of `context.ts`, or `nothing` for a block that compiles by itself but is not run.
   */
  readonly given?: readonly string[]
}

export const pages = ['README.md', 'examples/README.md', ...pagesIn('docs')]

export function markdownBlocks(file: string): CodeBlock[] {
  const text = readFileSync(join(root, file), 'utf8')
  const headingAbove = (line: number) =>
    text
      .split('\n')
      .slice(0, line - 1)
      .findLast((each) => /^#+ /.test(each))
      ?.replace(/^#+ /, '')
  return numbered(
    fences(text).map((block) => ({ ...block, file, name: `${file}: ${headingAbove(block.line)}` })),
  )
}

export function docstringBlocks(): CodeBlock[] {
  return numbered(
    docstrings().flatMap(({ file, line, name, text }) =>
      fences(text).map((block) => ({
        ...block,
        file,
        line: line + block.line - 1,
        name: `${file}: ${name}`,
      })),
    ),
  )
}

interface Docstring {
  readonly file: string
  readonly line: number
  /** Of what it documents. */
  readonly name: string
  /** Without the asterisks, line by line. */
  readonly text: string
}

let found: Docstring[] | undefined

function docstrings(): Docstring[] {
  found ??= readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .sort()
    .flatMap((path) => docstringsIn(`src/${path}`))
  return found
}

function docstringsIn(file: string): Docstring[] {
  const source = ts.createSourceFile(
    file,
    readFileSync(join(root, file), 'utf8'),
    ts.ScriptTarget.Latest,
    true,
  )
  const results: Docstring[] = []
  const visit = (node: ts.Node): void => {
    for (const comment of ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc)) {
      if (comment.parent !== node) continue
      results.push({
        file,
        line: source.getLineAndCharacterOfPosition(comment.pos).line + 1,
        name: nameOf(node),
        text: comment.getText(source).replaceAll(/^[ \t]*(\/\*\*|\*\/|\*) ?/gm, ''),
      })
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return results
}

function nameOf(node: ts.Node): string {
  if (ts.isVariableStatement(node)) {
    return node.declarationList.declarations.map(({ name }) => name.getText()).join(', ')
  }
  const name = ts.getNameOfDeclaration(node as ts.Declaration)
  return name?.getText() ?? ts.SyntaxKind[node.kind]
}

function pagesIn(folder: string): string[] {
  return readdirSync(join(root, folder))
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => `${folder}/${file}`)
}

function fences(markdown: string): Pick<CodeBlock, 'line' | 'language' | 'code' | 'given'>[] {
  return [...markdown.matchAll(/^(?:<!-- given: ([^\n]*?) -->\n)?```([^\n]*)\n(.*?)^```$/gms)].map(
    ({ index, 1: given, 2: language = '', 3: code = '' }) => ({
      line: markdown.slice(0, index).split('\n').length + (given === undefined ? 0 : 1),
      language,
      code,
      ...(given !== undefined && { given: given === 'nothing' ? [] : given.split(/, */) }),
    }),
  )
}

function numbered(blocks: CodeBlock[]): CodeBlock[] {
  const counts = new Map<string, number>()
  return blocks.map((block) => {
    const count = (counts.get(block.name) ?? 0) + 1
    counts.set(block.name, count)
    return count === 1 ? block : { ...block, name: `${block.name} (${count})` }
  })
}
