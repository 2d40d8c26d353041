/** Every declaration that a user of the package can see, as one text that is the same for the same API. */
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { entryPoints } from '../../scripts/entry-points.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** Markdown: what each entry point exports, then the declarations, without comments and sorted by name. */
export function describePublicApi(): string {
  const program = declarationsOf(sources())
  const checker = program.getTypeChecker()
  const resolved = (symbol: ts.Symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol

  const exported = new Set<ts.Symbol>()
  const lists = entryPoints.map(({ name: entryPoint, output }) => {
    const symbols = exportsOf(program, `src/${output}.d.ts`)
    for (const symbol of symbols) exported.add(resolved(symbol))
    const [values, types] = [true, false].map((isValue) =>
      symbols
        .filter((symbol) => Boolean(resolved(symbol).flags & ts.SymbolFlags.Value) === isValue)
        .map(({ name }) => name)
        .sort()
        .map((name) => `\`${name}\``)
        .join(', '),
    )
    return `## \`${entryPoint}\`\n\nValues: ${values}.\n\nTypes: ${types}.\n`
  })

  const seen = new Set<ts.Symbol>()
  const declarations: { name: string; text: string }[] = []
  // Grows while it is walked: what is not exported, but named by what is, belongs to it.
  const queue = [...exported]
  for (const symbol of queue) {
    if (seen.has(symbol)) continue
    seen.add(symbol)
    for (const statement of statementsOf(symbol)) {
      const text = printed(statement)
      declarations.push({ name: symbol.name, text: exported.has(symbol) ? `export ${text}` : text })
      forEachIdentifier(statement, (identifier) => {
        const named = checker.getSymbolAtLocation(identifier)
        if (named !== undefined) queue.push(resolved(named))
      })
    }
  }
  declarations.sort((a, b) => compare(a.name, b.name) || compare(a.text, b.text))
  const introduction =
    'What a change of this file changes for users belongs into `CHANGELOG.md`. `npm run api:update` writes it anew.'
  return [
    `# Public API\n\n${introduction}\n`,
    ...lists,
    `## Declarations\n\nWhat is not exported is here because something exported names it.\n`,
    ...declarations.map(({ text }) => `\`\`\`ts\n${text}\n\`\`\`\n`),
  ].join('\n')
}

function sources(): ts.Program {
  return ts.createProgram(
    entryPoints.map(({ source }) => join(root, source)),
    {
      ...compilerOptions(),
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      stripInternal: true,
    },
  )
}

/** A program of the declaration files of `src` as the compiler writes them, which stay in memory. */
function declarationsOf(program: ts.Program): ts.Program {
  const files = new Map<string, string>()
  program.emit(undefined, (path, text) => files.set(path, text))
  const options = compilerOptions()
  const host = ts.createCompilerHost(options)
  const { fileExists } = host
  host.fileExists = (path) => files.has(path) || (!isSource(path) && fileExists(path))
  host.getSourceFile = (path, languageVersion) => {
    const text = files.get(path)
    // What is not ours was read already.
    if (text === undefined) return program.getSourceFile(path)
    return ts.createSourceFile(path, text, languageVersion, true)
  }
  return ts.createProgram([...files.keys()], options, host)
}

function compilerOptions(): ts.CompilerOptions {
  const path = join(root, 'tsconfig.json')
  const { config } = ts.readConfigFile(path, ts.sys.readFile)
  return ts.parseJsonConfigFileContent(config, ts.sys, dirname(path)).options
}

function isSource(path: string): boolean {
  return path.startsWith(join(root, 'src/'))
}

function exportsOf(program: ts.Program, file: string): ts.Symbol[] {
  const checker = program.getTypeChecker()
  const source = program.getSourceFile(join(root, file))
  const module = source && checker.getSymbolAtLocation(source)
  if (module === undefined) throw new Error(`${file} is no module`)
  return checker.getExportsOfModule(module)
}

/** The statements of our own files that declare a symbol; none for members, parameters and what others declare. */
function statementsOf({ declarations = [] }: ts.Symbol): ts.Statement[] {
  return declarations
    .filter((declaration) => isSource(declaration.getSourceFile().fileName))
    .map((node): ts.Node => (ts.isVariableDeclaration(node) ? node.parent.parent : node))
    .filter((node): node is ts.Statement => ts.isSourceFile(node.parent) && ts.isStatement(node))
}

function printed(statement: ts.Statement): string {
  const printer = ts.createPrinter({ removeComments: true })
  const text = printer.printNode(ts.EmitHint.Unspecified, statement, statement.getSourceFile())
  return text.replace(/^(export )?(declare )?/, '')
}

function forEachIdentifier(node: ts.Node, visit: (identifier: ts.Identifier) => void): void {
  if (ts.isIdentifier(node)) visit(node)
  ts.forEachChild(node, (child) => forEachIdentifier(child, visit))
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
