/** The texts that the page copies, with their secrets, because they are there to be run. */
import { loopbackHost } from '../../shared/addresses.js'
import type { PageHost } from './host.js'
import { program } from './program.js'
import { type SentEvent, targetOf } from './rows.js'

/** @param name - `program`, `variables`, or the number of an event, for a command that sends it again */
export function textToCopy(host: PageHost, name: string): string | undefined {
  if (name === 'program') return program
  const variables = Object.entries(host.variables).map(([variable, value]) => `${variable}=${value}\n`)
  if (name === 'variables') return variables.join('')
  const event = host.activity.event(Number(name))
  return event !== undefined && 'request' in event ? curlOf(event, host) : undefined
}

/** Headers that curl writes itself. */
const ownHeaders = ['connection', 'content-length', 'host', 'transfer-encoding']

function curlOf(event: SentEvent, { baseUrl, variables }: PageHost): string {
  const { method, address } = targetOf(event)
  const { headers, body } = event.request
  // Joined as text: read as a reference, a target such as `//api` would name another host, which would get the secrets.
  const url = new URL(event.kind === 'request' ? baseUrl + address : address)
  const { hostname, protocol } = url
  const isOurs =
    protocol === 'https:' && (loopbackHost.test(hostname) || hostname === new URL(baseUrl).hostname)
  const { NOTIFICATION_CA_FILE: caFile = '' } = variables
  const parts = [
    // Otherwise curl reads brackets and braces of an address as a pattern.
    `curl --globoff --include --request ${method} ${quoted(url.href)}`,
    // Receivers of tests may have the emulator's certificate, too. For others curl needs what it trusts without this file.
    ...(isOurs ? [`--cacert ${quoted(caFile)}`] : []),
    ...Object.entries(headers)
      .filter(([name]) => !ownHeaders.includes(name.toLowerCase()))
      // curl omits a header without a value, unless it ends with a semicolon.
      .map(([name, value]) => `--header ${quoted(value === '' ? `${name};` : `${name}: ${value}`)}`),
    ...(body === '' ? [] : [`--data-raw ${quoted(body)}`]),
  ]
  return parts.join(' \\\n  ')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
