/** Puts the emulator's page into the build as one text: see src/emulator/page/page-html.ts. */
import type { Plugin } from 'esbuild'
import { buildPage } from '../src/emulator/page/build-page.js'

export const inlinePage: Plugin = {
  name: 'inline page',
  setup(build) {
    build.onLoad({ filter: /[\\/]emulator[\\/]page[\\/]page-html\.ts$/ }, async () => {
      const html = JSON.stringify(await buildPage())
      return { contents: `export async function loadPageHtml() {\n  return ${html}\n}\n`, loader: 'js' }
    })
  },
}
