/**
 * The page as text. The package's build puts that text in this module's place (tsup.config.ts); run from the sources,
 * the page is built when it is first asked for.
 */
export async function loadPageHtml(): Promise<string> {
  const { buildPage } = await import('./build-page.js')
  return buildPage()
}
