/** The route of docs/receiver.md in a real Next.js, built and started, on the package as it is published. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream'
import { createServer } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { KeyAndCertificate } from 'notification-subscriber/emulator'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { eventually } from '../../support/eventually.js'
import { brokenPayload, lowEnergy, unknownType } from './support/notifications.js'
import { pageBlock } from './support/page-blocks.js'
import { startServer } from './support/running-server.js'
import { callbackToken, subscribe } from './support/subscribed.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const nextCommand = 'node_modules/next/dist/bin/next'
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' as const }

const run = promisify(execFile)

describe('Next.js, with the package as it is published', () => {
  let folder: string
  let next: ChildProcess
  let port: number
  const printed: string[] = []

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'notification-subscriber-next-'))
    await cp(join(root, 'test/integration/frameworks/next'), folder, { recursive: true })
    await mkdir(join(folder, 'app/notifications'))
    await writeFile(join(folder, 'app/notifications/route.ts'), pageBlock('Next.js').code)
    const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: root })
    const packed = stdout.trim().split('\n').at(-1)
    await run('npm', ['install', '--no-save', '--include=dev', '--ignore-scripts', `./${packed}`], {
      cwd: folder,
    })
    await run(process.execPath, [nextCommand, 'build'], {
      cwd: folder,
      env: { ...env, CALLBACK_TOKEN: 'another-one-than-at-run-time' },
    })
    next = spawn(process.execPath, [nextCommand, 'start', '--hostname', '127.0.0.1', '--port', '0'], {
      cwd: folder,
      env: { ...env, CALLBACK_TOKEN: callbackToken },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const output of [next.stdout, next.stderr]) {
      if (output) createInterface(output).on('line', (line) => printed.push(line))
    }
    port = await vi.waitUntil(() => portIn(printed, next), { timeout: 120_000 })
  })

  afterAll(async () => {
    if (next?.exitCode === null) {
      const exited = once(next, 'exit')
      next.kill()
      await exited
    }
    if (folder) await rm(folder, { recursive: true })
  })

  test('the route of the page calls the handler, and refuses a callback without the secret', async () => {
    await using subscribed = await subscribe((tls) => startServer(tlsProxy(tls, port)))
    const { emulator } = subscribed

    expect(await emulator.notify(lowEnergy)).toMatchObject([{ status: 204 }])
    await eventually(() => expect(printed).toContain(`alice on call ${lowEnergy.payload.callId}`))
    for (let sent = 0; sent < 10; sent += 1) {
      expect(await emulator.notify(brokenPayload)).toMatchObject([{ status: 204, subscriptionEnded: false }])
    }
    await eventually(() =>
      expect(printed.filter((line) => line.includes('Not a notification delivery'))).toHaveLength(10),
    )
    await subscribed.sendToken('of-someone-else')
    expect(await emulator.notify(lowEnergy)).toMatchObject([{ status: 401 }])
  })

  test('the pages router answers with toNodeHandler, and warns of nothing', async () => {
    await using subscribed = await subscribe((tls) => startServer(tlsProxy(tls, port)), '/api/notifications')

    expect(await subscribed.emulator.notify(unknownType)).toMatchObject([{ status: 204 }])
    await eventually(() => expect(printed).toContain(`Handled ${unknownType.type} in the pages router`))
    expect(printed.join()).not.toMatch(/API resolved without sending a response/)
  })

  test('with `after` as waitUntil, a handler continues after the answer', async () => {
    await using subscribed = await subscribe((tls) => startServer(tlsProxy(tls, port)), '/after')

    expect(await subscribed.emulator.notify(unknownType)).toMatchObject([{ status: 204 }])
    await eventually(() => expect(printed).toContain(`Handled ${unknownType.type} after the answer`))
  })
})

/** Next.js says where it listens when it does. */
function portIn(lines: readonly string[], { exitCode }: ChildProcess): number {
  if (exitCode !== null) throw new Error(`Next.js ended with ${exitCode}:\n${lines.join('\n')}`)
  return Number(/^- Local: +http:\/\/127\.0\.0\.1:(\d+)$/m.exec(lines.join('\n'))?.[1] ?? 0)
}

/** Ends TLS in front of Next.js, which speaks only HTTP. */
function tlsProxy(tls: KeyAndCertificate, port: number): Server {
  return createServer(tls, (socket) => {
    const upstream = connect(port, '127.0.0.1')
    pipeline(socket, upstream, socket, () => {})
  })
}
