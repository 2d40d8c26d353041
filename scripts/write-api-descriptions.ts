/**
 * Writes `openapi.json` and `delivery.schema.json` into a folder: the last step of `npm run build`, apart from
 * the package's own code, so that importing the package loads none of it.
 *
 *     tsx scripts/write-api-descriptions.ts dist
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { deliveryJsonSchema } from './api-descriptions/json-schemas.js'
import { openApiDocument } from './api-descriptions/openapi.js'

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('Name the folder to write to: write-api-descriptions.ts <folder>')

const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'))
await mkdir(folder, { recursive: true })
await write('openapi.json', openApiDocument(version))
await write('delivery.schema.json', deliveryJsonSchema())

async function write(name: string, document: object): Promise<void> {
  await writeFile(join(String(folder), name), `${JSON.stringify(document)}\n`)
}
