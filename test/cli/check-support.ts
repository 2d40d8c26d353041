/** What the tests of `check` share: an emulator, the environment for it, and receivers that answer as they are told. */
import { writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { join } from 'node:path'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { beforeAll, expect } from 'vitest'
import { clientVariables } from '../../src/emulator/words.js'
import { serving } from '../support/listen.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { call } from './support.js'

/** Is in every body of an answer here, and must be printed nowhere. */
export const bodyMark = 'the-body-of-an-answer'

export interface PrintedStep {
  readonly name: string
  readonly outcome: 'passed' | 'failed' | 'skipped' | 'unknown'
  readonly message: string
  readonly next?: string
}

export interface PrintedCheck {
  readonly steps: readonly PrintedStep[]
  readonly failures: readonly PrintedStep[]
  readonly outcomes: readonly (readonly [name: string, outcome: string])[]
}

/** What a page of messages says of a step: no times, and no ports. */
export function shown(step: PrintedStep | undefined): string {
  const { outcome, message, next = '' } = step ?? { outcome: 'none', message: '' }
  if (outcome === 'passed') return outcome
  return `${outcome}: ${message}\n  ${next}`.replace(/(127\.0\.0\.1):\d+/g, '$1:<port>').trimEnd()
}

class CheckFixture {
  declare emulator: Emulator
  /** Has the files `token` (the right secret) and `ca.pem`. */
  declare folder: string

  /** A right environment, with the changes of a test. */
  environment(changes: Record<string, string> = {}): Record<string, string> {
    return { ...clientVariables(this.emulator, join(this.folder, 'ca.pem')), ...changes }
  }

  /** Runs `check --json`, and asserts what every check must keep. */
  async check(args: readonly string[], env = this.environment()): Promise<PrintedCheck> {
    const { code, stdout, stderr } = await call(['check', '--json', ...args], env)
    for (const secret of ['hush', bodyMark, this.emulator.clientSecret]) {
      expect(stdout + stderr).not.toContain(secret)
    }
    // Without a configuration the receiver alone is checked, and standard error says what is missing.
    const isConfigured = Object.keys(env).length > 0
    if (isConfigured) expect(stderr).toBe('')
    const lines: (PrintedStep & { event: string })[] = stdout.split('\n').map((line) => JSON.parse(line))
    const steps = lines.filter(({ event }) => event === 'step')
    const failures = steps.filter(({ outcome }) => outcome === 'failed')
    const isOk = failures.length === 0
    const result = {
      event: 'result',
      ok: isOk && isConfigured,
      failed: failures.length,
      unknown: steps.filter(({ outcome }) => outcome === 'unknown').length,
    }
    expect(lines.at(-1)).toEqual(result)
    expect(code).toBe(isOk ? (isConfigured ? 0 : 2) : 1)
    return { steps, failures, outcomes: steps.map(({ name, outcome }) => [name, outcome] as const) }
  }
}

/** One emulator for all tests of a file. */
export function checkFixture(): CheckFixture {
  const fixture = new CheckFixture()
  beforeAll(async () => {
    const folder = await temporaryFolder()
    fixture.emulator = await startEmulator()
    fixture.folder = folder.path
    await writeFile(join(folder.path, 'ca.pem'), fixture.emulator.ca)
    await writeFile(join(folder.path, 'token'), 'hush-1\n')
    return async () => {
      await fixture.emulator.close()
      await folder[Symbol.asyncDispose]()
    }
  })
  return fixture
}

/** A receiver by http: or https:. */
export async function serve(
  listener: RequestListener,
  tls?: { key: string; cert: string },
): Promise<AsyncDisposable & { url: string }> {
  const server = await serving(tls === undefined ? createServer(listener) : createTlsServer(tls, listener))
  return { ...server, url: `${tls === undefined ? 'http' : 'https'}://${server.host}/notifications` }
}
