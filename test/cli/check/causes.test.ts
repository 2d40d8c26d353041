/** Why an operator gets no notifications: each cause leads to a sentence that names the next step. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber'
import { afterEach, expect, test, vi } from 'vitest'
import { updateCommand } from '../../../src/cli/subscriptions.js'
import { createLoopbackCertificate } from '../../../src/emulator/https/certificate.js'
import { created } from '../../emulator/support.js'
import { createCertificate } from '../../support/certificates.js'
import { ConnectProxy } from '../../support/connect-proxy.js'
import { refusingPort } from '../../support/listen.js'
import { expectPage } from '../../support/message-page.js'
import { call } from '../support.js'
import { checkFixture, type PrintedStep, serve } from './support.js'

const fixture = checkFixture()
afterEach(() => vi.unstubAllEnvs())

/** The first step of `check` that did not pass, of these if names are given. */
async function checked(
  args: string[],
  changes: Record<string, string> = {},
): Promise<PrintedStep | undefined> {
  const { steps, failures } = await fixture.check(args, fixture.environment(changes))
  return failures[0] ?? steps.find(({ name }) => name === 'Subscriptions')
}

function callback(url: string): string[] {
  return ['--callback-url', url, '--secret', `token=@${join(fixture.folder, 'token')}`]
}

const receiver = new DeliveryReceiver({ secrets: { token: 'hush-1' }, logger: false })

/** By the cause: what `check` shows of it, or a command after which it is looked for. */
const causes: Readonly<
  Record<string, readonly [next: RegExp, shown: () => Promise<Partial<PrintedStep> | undefined>]>
> = {
  'wrong secret': [
    /NOTIFICATION_CLIENT_SECRET/,
    () => checked([], { NOTIFICATION_CLIENT_SECRET: 'hush-no' }),
  ],
  'wrong tenant': [/NOTIFICATION_DOMAIN/, () => checked([], { NOTIFICATION_DOMAIN: 'acme' })],
  'unreachable callback URL': [
    /does it listen at 127\.0\.0\.1/,
    () => checked(callback(`https://127.0.0.1:${refusingPort}/n`)),
  ],
  'callback port without TLS': [
    /answers, but not in TLS/,
    async () => {
      await using app = await serve(toNodeHandler(receiver))
      return await checked(callback(app.url.replace('http:', 'https:')))
    },
  ],
  'unreachable service': [
    /NOTIFICATION_BASE_URL/,
    () => checked([], { NOTIFICATION_BASE_URL: `https://127.0.0.1:${refusingPort}` }),
  ],
  'untrusted callback certificate': [
    /public authority.*--callback-ca/,
    async () => {
      const { tls } = createLoopbackCertificate()
      await using app = await serve(toNodeHandler(receiver), tls)
      return await checked(callback(app.url))
    },
  ],
  'callback certificate of another host': [
    /replace the certificate/,
    async () => {
      const { ca, tls } = createCertificate({ host: 'other.example' })
      const file = join(fixture.folder, 'other-host.pem')
      await writeFile(file, ca)
      await using app = await serve(toNodeHandler(receiver), tls)
      return await checked([...callback(app.url), '--callback-ca', file])
    },
  ],
  'proxy that wants credentials': [
    /variable that names the proxy.*NO_PROXY/,
    async () => {
      await using proxy = await ConnectProxy.listen({ to: fixture.emulator.baseUrl, refuseWith: 407 })
      for (const name of ['https_proxy', 'http_proxy', 'NO_PROXY', 'no_proxy']) vi.stubEnv(name, undefined)
      vi.stubEnv('HTTPS_PROXY', proxy.url)
      const host = 'https://notifications.invalid'
      return await checked([], {
        HTTPS_PROXY: proxy.url,
        NOTIFICATION_BASE_URL: host,
        NOTIFICATION_AUTH_URL: host,
      })
    },
  ],
  'ended subscription, by check': [/subscribe.*--recreate-if-exists/, () => checked([])],
  'ended subscription, by update': [
    /create it again with subscribe/,
    async () => {
      const id = await created(fixture.emulator)
      fixture.emulator.endSubscription(id)
      const args = ['--json', String(id), '--parameter', 'token=env:CALLBACK_TOKEN']
      const { stdout } = await call(updateCommand, args, fixture.environment({ CALLBACK_TOKEN: 'hush' }))
      return JSON.parse(stdout)
    },
  ],
}

test('every cause leads to a sentence that names the next step', async () => {
  const messages: Record<string, string> = {}
  for (const [cause, [expected, shown]] of Object.entries(causes)) {
    const { message = '', next = '' } = (await shown()) ?? {}
    vi.unstubAllEnvs()
    expect(next, cause).toMatch(expected)
    // Of OpenSSL's own words none stays the same.
    const shownMessage = message.replace(/ \([\dA-F]+:error:.*\)$/, '')
    messages[cause] = `${shownMessage}\n  → ${next}`.replace(/(127\.0\.0\.1):\d+/g, '$1:<port>')
  }
  await expectPage('causes', messages)
})
