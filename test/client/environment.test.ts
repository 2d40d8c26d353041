/** The wording of the errors is reviewed as a whole: test/messages. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { NotificationClient } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { baseUrl, credentials, fakeService, subscription } from '../support/fake-service.js'
import { wrongPlaces } from '../support/message-page.js'
import { routeOf } from '../support/routes.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const env = {
  NOTIFICATION_BASE_URL: baseUrl,
  NOTIFICATION_AUTH_URL: credentials.authUrl,
  NOTIFICATION_DOMAIN: credentials.domain,
  NOTIFICATION_CLIENT_ID: credentials.clientId,
  NOTIFICATION_CLIENT_SECRET: 'a+b',
}

const problemsOf = (options: unknown, environment: unknown) =>
  wrongPlaces(() => NotificationClient.fromEnv(options as object, environment as typeof env))

describe('fromEnv', () => {
  test('names every variable that is missing or empty', () => {
    const { NOTIFICATION_DOMAIN: _, ...rest } = env
    expect(problemsOf({}, { ...rest, NOTIFICATION_CLIENT_SECRET: '' })).toEqual([
      'NOTIFICATION_DOMAIN',
      'NOTIFICATION_CLIENT_SECRET',
    ])
    expect(problemsOf({}, {})).toEqual(Object.keys(env))
  })

  test('reads credentials, scope and encoding, where an empty variable is one that is not set', async () => {
    const service = fakeService()
    const further = { NOTIFICATION_SCOPE: 'a b', NOTIFICATION_CREDENTIALS_ENCODING: 'form-urlencoded' }
    for (const more of [further, { NOTIFICATION_SCOPE: '', NOTIFICATION_CREDENTIALS_ENCODING: '' }]) {
      await NotificationClient.fromEnv({ fetch: service.fetch }, { ...env, ...more }).getAccessToken()
    }
    expect(
      service.tokenRequests.map(({ body, headers }) => [
        body,
        atob(headers.get('authorization')?.replace('Basic ', '') ?? ''),
      ]),
    ).toEqual([
      ['grant_type=client_credentials&scope=a+b', 'subscriber:a%2Bb'],
      ['grant_type=client_credentials', 'subscriber:a+b'],
    ])
  })

  test.each([
    ['in quotes', '"subscriber"'],
    ['in single quotes', "'subscriber'"],
    ['in quotes of a word processor', '“subscriber”'],
    ['with a zero-width space', 'sub\u200bscriber'],
    ['with a hard space', 'subscriber\u00a0'],
    ['with a space at its end', 'subscriber '],
    ['of a variable', '$' + '{CLIENT_ID}'],
    ['of a template', '{{ .Values.clientId }}'],
    ['of cmd.exe', '%CLIENT_ID%'],
    ['of an example', '<your-client-id>'],
    ['of JavaScript', 'undefined'],
    ['of Azure', '@Microsoft.KeyVault(SecretUri=https://v.example.com/secrets/x)'],
    ['that sops has not decrypted', 'ENC[AES256_GCM,data:evQ=,iv:A4DGEltX,tag:YDUGEtx5,type:str]'],
  ])('names a value %s', (_how, value) => {
    expect(problemsOf({}, { ...env, NOTIFICATION_CLIENT_SECRET: value })).toEqual([
      'NOTIFICATION_CLIENT_SECRET',
    ])
  })

  test('names the variable of a value that cannot work, and an option by its own name', () => {
    const wrong = {
      NOTIFICATION_BASE_URL: 'http://notifications.example.com',
      NOTIFICATION_AUTH_URL: 'auth.example.com',
      NOTIFICATION_DOMAIN: 'acme ',
      NOTIFICATION_CLIENT_SECRET: 'a\n',
      NOTIFICATION_CLIENT_AUTHENTICATION: 'jwt',
      NOTIFICATION_CREDENTIALS_ENCODING: 'base64',
    }
    expect(problemsOf({}, { ...env, ...wrong }).sort()).toEqual(Object.keys(wrong).sort())
    expect(problemsOf({ timeoutMs: 0 }, env)).toEqual(['timeoutMs'])
  })

  test('reads the certificates of NOTIFICATION_CA_FILE', async () => {
    const { ca } = createLoopbackCertificate()
    await using folder = await temporaryFolder()
    const withFile = { ...env, NOTIFICATION_CA_FILE: join(folder.path, 'ca.pem') }
    expect(problemsOf({}, withFile)).toEqual(['NOTIFICATION_CA_FILE'])
    await writeFile(withFile.NOTIFICATION_CA_FILE, 'no certificate')
    expect(problemsOf({}, withFile)).toEqual(['NOTIFICATION_CA_FILE'])
    // An option of the caller's comes before the variable, and is named by its own name.
    expect(problemsOf({ ca: 'x' }, withFile)).toEqual(['ca'])
    await writeFile(withFile.NOTIFICATION_CA_FILE, ca)
    expect(problemsOf({}, withFile)).toEqual([])
    // The other variables keep their names beside an option `ca`.
    expect(problemsOf({ ca }, { ...env, NOTIFICATION_DOMAIN: 'acme ' })).toEqual(['NOTIFICATION_DOMAIN'])
  })

  test('reads a user name and a password, in place of client credentials', async () => {
    const { NOTIFICATION_BASE_URL } = env
    const basic = { NOTIFICATION_BASE_URL, NOTIFICATION_USERNAME: 'app', NOTIFICATION_PASSWORD: 'a:b' }
    const service = fakeService()
    await NotificationClient.fromEnv({ fetch: service.fetch }, basic).createSubscription(subscription)
    expect(service.calls[0]?.headers.get('authorization')).toBe(`Basic ${btoa('app:a:b')}`)
    expect(service.tokenRequests).toEqual([])
    expect(problemsOf({}, { ...basic, NOTIFICATION_PASSWORD: '' })).toEqual(['NOTIFICATION_PASSWORD'])
    expect(problemsOf({}, { NOTIFICATION_PASSWORD: 'x' })).toEqual([
      'NOTIFICATION_BASE_URL',
      'NOTIFICATION_USERNAME',
    ])
    expect(problemsOf({}, { ...basic, NOTIFICATION_USERNAME: 'a:b' })).toEqual(['NOTIFICATION_USERNAME'])
    // Which of two kinds is meant cannot be known.
    expect(problemsOf({}, { ...basic, NOTIFICATION_SCOPE: 'a' })).toEqual(['NOTIFICATION_USERNAME'])
    expect(problemsOf({}, { ...env, NOTIFICATION_PASSWORD: 'x' })).toEqual([
      'NOTIFICATION_USERNAME',
      'NOTIFICATION_PASSWORD',
    ])
  })

  test.each([
    ['POST /end subscription_id', 'POST', '/end', 'subscription_id=7'],
    ['  DELETE   /end  id ', 'DELETE', '/end', 'id=7'],
    ['POST /end?id={subscriptionId}', 'POST', '/end?id=7', ''],
    ['POST', 'POST', routeOf('unsubscribe', 7).path, ''],
    ['', routeOf('unsubscribe', 7).method, routeOf('unsubscribe', 7).path, ''],
  ])('reads the route %j', async (text, method, path, body) => {
    const service = fakeService()
    service.onCall = () => new Response(null, { status: 204 })
    const withRoute = { ...env, NOTIFICATION_UNSUBSCRIBE_ROUTE: text }
    await NotificationClient.fromEnv({ fetch: service.fetch }, withRoute).unsubscribe(7)
    expect(service.calls).toMatchObject([{ method, url: `${baseUrl}${path}`, body }])
  })

  test('a route among the options comes before its variable, and leaves the other one', async () => {
    const service = fakeService()
    service.onCall = () => new Response(null, { status: 204 })
    const both = { NOTIFICATION_UNSUBSCRIBE_ROUTE: 'PUT', NOTIFICATION_UPDATE_ROUTE: 'PATCH' }
    for (const routes of [{ unsubscribe: { method: 'POST' } }, { update: { method: 'POST' } }] as const) {
      const client = NotificationClient.fromEnv({ fetch: service.fetch, routes }, { ...env, ...both })
      await client.unsubscribe(7)
      await client.updateSubscriptionParameters(7, { parameters: { token: 'x' } })
    }
    expect(service.calls.map(({ method }) => method)).toEqual(['POST', 'PATCH', 'PUT', 'POST'])
  })

  test.each(['post /end id', 'POST /end', 'POST /end id x', '/end'])('refuses the route %j', (text) => {
    const route = { NOTIFICATION_UNSUBSCRIBE_ROUTE: text }
    expect(problemsOf({}, { ...env, ...route })).toEqual(['NOTIFICATION_UNSUBSCRIBE_ROUTE'])
  })
})
