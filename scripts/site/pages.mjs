/**
 * A plugin of typedoc: a page of docs/ is listed under its own title, in the group "Guide" or "Project", and every page is
 * mended where the theme breaks a rule of axe.
 */
import { Converter, PageEvent, Renderer } from 'typedoc'

const projectPages = /^(?:changelog|contributing|security|docs\/(?:compatibility|decisions|performance))$/i

/** @param {import('typedoc').Application} app */
export function load(app) {
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_context, page) => {
    page.frontmatter.group = projectPages.test(page.name) ? 'Project' : 'Guide'
    const title = /^# (.+)$/m.exec(page.content.map(({ text }) => text).join(''))?.[1]
    if (title !== undefined) page.name = title.replaceAll('`', '')
  })
  app.renderer.on(Renderer.EVENT_BEGIN, () => app.renderer.on(PageEvent.END, mend))
}

/** @param {import('typedoc').PageEvent} page */
function mend(page) {
  let level = 0
  page.contents = page.contents
    ?.replace('<div class="col-content">', '<div class="col-content" role="main">')
    .replace('<div class="col-sidebar">', '<div class="col-sidebar" role="complementary">')
    // A wide table scrolls, by keyboard too.
    .replaceAll('<table>', '<table tabindex="0">')
    // A link inside of a summary: clicks would do two things.
    .replace(/<summary.*?<\/summary>/gs, (summary) => summary.replace(/<a\b.*?<\/a>/gs, ''))
    // No level of headings is left out.
    .replace(/<h([1-6])\b/g, (heading, given) => {
      const next = Math.min(Number(given), level + 1)
      level = next
      return next === Number(given) ? heading : `${heading} aria-level="${next}"`
    })
}
