import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { entryPoints } from '../../scripts/entry-points.js'

const root = new URL('../../', import.meta.url)
const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))

test.each(entryPoints)(
  '$name has code and types for import and require, and a source',
  ({ name, output, source }) => {
    const path = name.replace(manifest.name, '.')
    expect(manifest.exports[path]).toEqual({
      import: { types: `./dist/${output}.d.ts`, default: `./dist/${output}.js` },
      require: { types: `./dist/${output}.d.cts`, default: `./dist/${output}.cjs` },
    })
    // Old compilers (moduleResolution node10) read these instead.
    const old = path === '.' ? [manifest.types] : manifest.typesVersions['*'][path.slice(2)]
    expect(old).toEqual([`./dist/${output}.d.cts`])
    expect(existsSync(new URL(source, root))).toBe(true)
  },
)
