/** HTML as tagged templates: every value is escaped, except what such a template made. */

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
