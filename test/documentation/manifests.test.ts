/** The Kubernetes manifests of docs/deployment.md have the types of the Kubernetes API: no field is misspelt or of another kind. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { temporaryFolder } from '../support/temporary-folder.js'
import { root } from './code-blocks.js'

const [, yaml = ''] = /```yaml\n(.*?)```/s.exec(readFileSync(join(root, 'docs/deployment.md'), 'utf8')) ?? []
const manifests: { apiVersion: string; kind: string }[] = parseAllDocuments(yaml).map((document) =>
  document.toJS(),
)

test('are a StatefulSet and a Service', () => {
  expect(manifests.map(({ kind }) => kind)).toEqual(['StatefulSet', 'Service'])
})

test.each(manifests)('$kind', async (manifest) => {
  expect(await problemsOf(manifest)).toEqual([])
})

/** What the compiler says of the manifest as a value of its type. */
async function problemsOf(manifest: { apiVersion: string; kind: string }): Promise<string[]> {
  await using folder = await temporaryFolder()
  const { apiVersion, kind } = manifest
  const types = `kubernetes-types/${apiVersion.includes('/') ? apiVersion : `core/${apiVersion}`}`
  const file = join(folder.path, 'manifest.ts')
  const from = join(root, 'node_modules', types).replaceAll('\\', '/')
  writeFileSync(
    file,
    `import type { ${kind} } from '${from}'\nexport const manifest: ${kind} = ${JSON.stringify(manifest)}\n`,
  )
  const program = ts.createProgram([file], { strict: true, noEmit: true, skipLibCheck: true, types: [] })
  return ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))
}
