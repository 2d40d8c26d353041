import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigurationError, NotificationClient } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { baseUrl, credentials, fakeService, subscription } from '../support/fake-service.js'

const working = { baseUrl, auth: credentials }

const { ca } = createLoopbackCertificate()

describe('fromEnv', () => {
  const env = {
    NOTIFICATION_BASE_URL: baseUrl,
    NOTIFICATION_AUTH_URL: credentials.authUrl,
    NOTIFICATION_DOMAIN: credentials.domain,
    NOTIFICATION_CLIENT_ID: credentials.clientId,
    NOTIFICATION_CLIENT_SECRET: credentials.clientSecret,
  }

  test('reads the five variables', async () => {
    const service = fakeService()
    await NotificationClient.fromEnv({ fetch: service.fetch }, env).createSubscription(subscription)
    expect(service.tokenRequests).toHaveLength(1)
    expect(service.calls).toHaveLength(1)
  })

  test('names every variable that is missing or empty', () => {
    const { NOTIFICATION_DOMAIN: _, ...rest } = env
    expect(() => NotificationClient.fromEnv({}, { ...rest, NOTIFICATION_CLIENT_SECRET: '' })).toThrow(
      "NotificationClient cannot be made from this environment: `NOTIFICATION_DOMAIN` is missing: set it to the tenant's name; " +
        '`NOTIFICATION_CLIENT_SECRET` is missing: set it to the client secret.',
    )
    expect(() => NotificationClient.fromEnv({}, {})).toThrow(ConfigurationError)
    expect(() => NotificationClient.fromEnv({}, {})).toThrow(
      '`NOTIFICATION_BASE_URL` is missing: set it to the base address of the notification service; ' +
        '`NOTIFICATION_AUTH_URL` is missing: set it to the base address of the authorization server; ' +
        "`NOTIFICATION_DOMAIN` is missing: set it to the tenant's name; " +
        '`NOTIFICATION_CLIENT_ID` is missing: set it to the client ID; ' +
        '`NOTIFICATION_CLIENT_SECRET` is missing: set it to the client secret.',
    )
    expect(() => NotificationClient.fromEnv({}, null as never)).toThrow(ConfigurationError)
  })
})

describe('fromEnv, in detail,', () => {
  const env = {
    NOTIFICATION_BASE_URL: baseUrl,
    NOTIFICATION_AUTH_URL: credentials.authUrl,
    NOTIFICATION_DOMAIN: credentials.domain,
    NOTIFICATION_CLIENT_ID: credentials.clientId,
    NOTIFICATION_CLIENT_SECRET: 'a+b',
  }
  const problemsOf = (make: () => unknown) => {
    try {
      make()
    } catch (error) {
      if (error instanceof ConfigurationError) return [error.message, error.issues.map(({ path }) => path)]
      throw error
    }
    return []
  }

  test('reads scope and encoding, where an empty variable is one that is not set', async () => {
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

  test('tells what is wrong with a value by the name of its variable', () => {
    const wrong = {
      ...env,
      NOTIFICATION_BASE_URL: 'http://notifications.example.com',
      NOTIFICATION_AUTH_URL: 'auth.example.com',
      NOTIFICATION_DOMAIN: 'acme ',
      NOTIFICATION_CLIENT_SECRET: 'a\n',
      NOTIFICATION_CREDENTIALS_ENCODING: 'base64',
    }
    expect(problemsOf(() => NotificationClient.fromEnv({}, wrong))).toEqual([
      'NotificationClient cannot be made from this environment: ' +
        '`NOTIFICATION_BASE_URL` must be an https: URL (for tests on loopback, set `allowInsecureLoopback`); ' +
        '`NOTIFICATION_AUTH_URL` must be an absolute URL, such as `https://app.example.com/path`; ' +
        '`NOTIFICATION_DOMAIN` must not begin or end with white space; ' +
        '`NOTIFICATION_CLIENT_SECRET` must not contain control characters; ' +
        '`NOTIFICATION_CREDENTIALS_ENCODING` must be `raw` or `form-urlencoded`.',
      [
        ['NOTIFICATION_BASE_URL'],
        ['NOTIFICATION_AUTH_URL'],
        ['NOTIFICATION_DOMAIN'],
        ['NOTIFICATION_CLIENT_SECRET'],
        ['NOTIFICATION_CREDENTIALS_ENCODING'],
      ],
    ])
    expect(problemsOf(() => NotificationClient.fromEnv({ timeoutMs: 0 }, env))[1]).toEqual([['timeoutMs']])
  })

  test('reads the certificates of NOTIFICATION_CA_FILE, and says which file it cannot read', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'notification-subscriber-'))
    try {
      const NOTIFICATION_CA_FILE = join(folder, 'ca.pem')
      expect(problemsOf(() => NotificationClient.fromEnv({}, { ...env, NOTIFICATION_CA_FILE }))).toEqual([
        'NotificationClient cannot be made from this environment: `NOTIFICATION_CA_FILE` names a file that ' +
          `cannot be read (ENOENT: no such file or directory, open '${NOTIFICATION_CA_FILE}').`,
        [['NOTIFICATION_CA_FILE']],
      ])
      await writeFile(NOTIFICATION_CA_FILE, 'no certificate')
      expect(problemsOf(() => NotificationClient.fromEnv({}, { ...env, NOTIFICATION_CA_FILE }))).toEqual([
        expect.stringContaining('`NOTIFICATION_CA_FILE` names a file that holds no PEM certificate'),
        [['NOTIFICATION_CA_FILE']],
      ])
      // An option of the caller's comes before the variable, and is told by its own name.
      expect(
        problemsOf(() => NotificationClient.fromEnv({ ca: 'x' }, { ...env, NOTIFICATION_CA_FILE }))[1],
      ).toEqual([['ca']])
      await writeFile(NOTIFICATION_CA_FILE, ca)
      expect(problemsOf(() => NotificationClient.fromEnv({}, { ...env, NOTIFICATION_CA_FILE }))).toEqual([])
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('says so when the environment stands where the options go, as in 0.1', () => {
    const sentence =
      'NotificationClient cannot be made from this environment: the first argument is the environment, ' +
      'which is the second one since 0.2: leave it out, or write `NotificationClient.fromEnv({}, env)`.'
    for (const first of [process.env, env]) {
      expect(problemsOf(() => NotificationClient.fromEnv(first as never))[0]).toBe(sentence)
    }
  })

  test.each(['auth', 'baseUrl'] as const)('refuses %s among its options, which it reads itself', (name) => {
    expect(problemsOf(() => NotificationClient.fromEnv({ [name]: working[name] } as never, env))).toEqual([
      `NotificationClient cannot be made from this environment: \`${name}\` is read from the environment: ` +
        'leave it out here, or use `new NotificationClient`.',
      [[name]],
    ])
  })
})
