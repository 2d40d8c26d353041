/** A request or a callback as a command for a shell. */
import type { CallbackView, RequestView, ServiceView } from '../views.js'

/** Headers that curl writes itself. */
const ownHeaders = ['connection', 'content-length', 'host', 'transfer-encoding']

export function curlOf(entry: RequestView | CallbackView, { baseUrl, variables }: ServiceView): string {
  // Joined as text: read as a reference, a target such as `//api` would name another host, which would get the secrets.
  const url = new URL(entry.kind === 'request' ? new URL(baseUrl).origin + entry.target : entry.target)
  const [, caFile] = variables.find(([name]) => name === 'NOTIFICATION_CA_FILE') ?? []
  // The emulator's certificate is also that of the receivers of tests.
  const isOurs = ['localhost', '127.0.0.1', '[::1]', new URL(baseUrl).hostname].includes(url.hostname)
  const parts = [
    // Otherwise curl reads brackets and braces of an address as a pattern.
    `curl --globoff --include --request ${entry.method} ${quoted(url.href)}`,
    ...(isOurs && url.protocol === 'https:' && caFile !== undefined ? [`--cacert ${quoted(caFile)}`] : []),
    ...entry.headers
      .filter(([name]) => !ownHeaders.includes(name.toLowerCase()))
      // curl omits a header without a value, unless it ends with a semicolon.
      .map(([name, value]) => `--header ${quoted(value === '' ? `${name};` : `${name}: ${value}`)}`),
    ...(entry.body === '' ? [] : [`--data-raw ${quoted(entry.body)}`]),
  ]
  return parts.join(' \\\n  ')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
