/** Why an operator gets no notifications: each cause leads to a sentence that names the next step. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber'
import { afterEach, test, vi } from 'vitest'
import { createCertificate } from '../../support/certificates.js'
import { ConnectProxy } from '../../support/connect-proxy.js'
import { refusingPort } from '../../support/listen.js'
import { expectPage } from '../../support/message-page.js'
import { checkFixture, type PrintedStep, serve } from './support.js'

const fixture = checkFixture()
afterEach(() => vi.unstubAllEnvs())

/** The first step of `check` that failed. */
async function failed(
  args: string[],
  changes: Record<string, string> = {},
): Promise<PrintedStep | undefined> {
  return (await fixture.check(args, fixture.environment(changes))).failures[0]
}

function callback(url: string): string[] {
  return ['--callback-url', url, '--secret', `token=@${join(fixture.folder, 'token')}`]
}

const receiver = new DeliveryReceiver({ secrets: { token: 'hush-1' }, logger: false })

/** What `check` shows of each cause that no other page of messages has. */
const causes: Readonly<Record<string, () => Promise<PrintedStep | undefined>>> = {
  'callback port without TLS': async () => {
    await using app = await serve(toNodeHandler(receiver))
    return await failed(callback(app.url.replace('http:', 'https:')))
  },
  'unreachable service': () => failed([], { NOTIFICATION_BASE_URL: `https://127.0.0.1:${refusingPort}` }),
  'callback certificate of another host': async () => {
    const { ca, tls } = createCertificate({ host: 'other.example' })
    const file = join(fixture.folder, 'other-host.pem')
    await writeFile(file, ca)
    await using app = await serve(toNodeHandler(receiver), tls)
    return await failed([...callback(app.url), '--callback-ca', file])
  },
  'proxy that wants credentials': async () => {
    await using proxy = await ConnectProxy.listen({ to: fixture.emulator.baseUrl, refuseWith: 407 })
    for (const name of ['https_proxy', 'http_proxy', 'NO_PROXY', 'no_proxy']) vi.stubEnv(name, undefined)
    vi.stubEnv('HTTPS_PROXY', proxy.url)
    const host = 'https://notifications.invalid'
    const addresses = { NOTIFICATION_BASE_URL: host, NOTIFICATION_AUTH_URL: host }
    return await failed([], { HTTPS_PROXY: proxy.url, ...addresses })
  },
}

test('every cause leads to a sentence that names the next step', async () => {
  const messages: Record<string, string> = {}
  for (const [cause, shown] of Object.entries(causes)) {
    const { message = '', next = '' } = (await shown()) ?? {}
    vi.unstubAllEnvs()
    // Of OpenSSL's own words none stays the same.
    const shownMessage = message.replace(/ \([\dA-F]+:error:.*\)$/, '')
    messages[cause] = `${shownMessage}\n  → ${next}`.replace(/(127\.0\.0\.1):\d+/g, '$1:<port>')
  }
  await expectPage('causes', messages)
})
