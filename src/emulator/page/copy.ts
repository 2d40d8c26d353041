/** What the page copies, with its secrets: it is there to be run. */
import type { PageHost } from './host.js'
import { program } from './program.js'
import type { SentEvent } from './rows.js'

/** @param name - as `copyButton` has it: of an event its number, for a command that sends it again */
export function textToCopy(host: PageHost, name: string): string | undefined {
  if (name === 'program') return program
  const variables = Object.entries(host.variables).map(([variable, value]) => `${variable}=${value}\n`)
  if (name === 'variables') return variables.join('')
  const event = host.activity.event(Number(name))
  return event !== undefined && 'request' in event ? curlOf(event, host) : undefined
}

/** Headers that curl writes itself. */
const ownHeaders = ['connection', 'content-length', 'host', 'transfer-encoding']

function curlOf({ kind, request }: SentEvent, { baseUrl, variables }: PageHost): string {
  // Joined as text: read as a reference, a target such as `//api` would name another host, which would get the secrets.
  const url = new URL(kind === 'request' ? baseUrl + request.path : request.callbackUrl)
  const method = kind === 'request' ? request.method : 'POST'
  const { NOTIFICATION_CA_FILE: caFile = '' } = variables
  const parts = [
    // Otherwise curl reads brackets and braces of an address as a pattern.
    `curl --globoff --include --request ${method} ${quoted(url.href)}`,
    // The emulator's certificate is also that of the receivers of tests. What else curl trusts is replaced by the file.
    ...(isOurs(url, baseUrl) ? [`--cacert ${quoted(caFile)}`] : []),
    ...Object.entries(request.headers)
      .filter(([name]) => !ownHeaders.includes(name.toLowerCase()))
      // curl omits a header without a value, unless it ends with a semicolon.
      .map(([name, value]) => `--header ${quoted(value === '' ? `${name};` : `${name}: ${value}`)}`),
    ...(request.body === '' ? [] : [`--data-raw ${quoted(request.body)}`]),
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
