/** A request or a callback as a command for a shell, with its secrets: it is there to be run. */
import type { HistoryEntry } from '../activity.js'
import type { PageHost } from './host.js'

/** Headers that curl writes itself. */
const ownHeaders = ['connection', 'content-length', 'host', 'transfer-encoding']

export function curlOf(
  { kind, record }: Extract<HistoryEntry, { record: object }>,
  { emulator, environment }: Pick<PageHost, 'emulator' | 'environment'>,
): string {
  // Joined as text: read as a reference, a target such as `//api` would name another host, which would get the secrets.
  const url = new URL(kind === 'request' ? emulator.baseUrl + record.path : record.callbackUrl)
  const method = kind === 'request' ? record.method : 'POST'
  const caFile = environment.NOTIFICATION_CA_FILE ?? 'emulator-ca.pem'
  const parts = [
    // Otherwise curl reads brackets and braces of an address as a pattern.
    `curl --globoff --include --request ${method} ${quoted(url.href)}`,
    // The emulator's certificate is also that of the receivers of tests. What else curl trusts is replaced by the file.
    ...(isOurs(url, emulator.baseUrl) ? [`--cacert ${quoted(caFile)}`] : []),
    ...Object.entries(record.headers)
      .filter(([name]) => !ownHeaders.includes(name.toLowerCase()))
      // curl omits a header without a value, unless it ends with a semicolon.
      .map(([name, value]) => `--header ${quoted(value === '' ? `${name};` : `${name}: ${value}`)}`),
    ...(record.body === '' ? [] : [`--data-raw ${quoted(record.body)}`]),
  ]
  return parts.join(' \\\n  ')
}

function isOurs({ protocol, hostname }: URL, baseUrl: string): boolean {
  const hosts = ['localhost', '127.0.0.1', '[::1]', new URL(baseUrl).hostname]
  return protocol === 'https:' && hosts.includes(hostname)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
