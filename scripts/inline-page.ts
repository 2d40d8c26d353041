/** Puts the emulator's page into the build as one text: see src/emulator/page/page-html.ts. */
import { brotliCompressSync } from 'node:zlib'
import type { Plugin } from 'esbuild'
import { buildPage } from '../src/emulator/page/build-page.js'

export const inlinePage: Plugin = {
  name: 'inline page',
  setup(build) {
    build.onLoad({ filter: /[\\/]emulator[\\/]page[\\/]page-html\.ts$/ }, async () => {
      // Two fifths as long as the page itself.
      const packed = brotliCompressSync(await buildPage()).toString('base64')
      const contents = `
        import { brotliDecompressSync } from 'node:zlib'
        export async function loadPageHtml() {
          return brotliDecompressSync(Buffer.from('${packed}', 'base64')).toString()
        }`
      return { contents, loader: 'js' }
    })
  },
}
