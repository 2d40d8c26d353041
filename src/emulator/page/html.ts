/** HTML as tagged templates, which escape every value except one of such a template; the buttons and fields of the page. */

export class Html {
  constructor(readonly text: string) {}
}

export function html(strings: TemplateStringsArray, ...values: readonly unknown[]): Html {
  return new Html(String.raw({ raw: strings }, ...values.map(markupOf)))
}

/** Lists are joined; `undefined` and `false` are nothing. */
function markupOf(value: unknown): string {
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map(markupOf).join('')
  if (value === undefined || value === false) return ''
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Posts its fields, all of them as text. */
export function actionButton(action: string, fields: object, label: string, kind = ''): Html {
  const values = Object.entries(fields).map(([name, value]) => hidden(name, value))
  return html`<form class="inline" action="api/${action}">${values}<button class="button ${kind}">${label}</button></form>`
}

/** A click fetches the text, so that a page that hides secrets holds none. */
export function copyButton(name: string, label: string, kind = ''): Html {
  return html`<a class="button ${kind}" href="copy/${name}" data-copy>${label}</a>`
}

export function hidden(name: string, value: unknown): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`
}

export function select(name: string, label: string, options: Readonly<Record<string, string>>): Html {
  return html`<label>${label}<select name="${name}">${Object.entries(options).map(
    ([value, text]) => html`<option value="${value}">${text}</option>`,
  )}</select></label>`
}
