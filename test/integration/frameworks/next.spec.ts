/** The route of docs/receiver.md in a real Next.js, built and started, on the package as it is published. */
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { createServer } from 'node:tls'
import { fileURLToPath } from 'node:url'
import type { KeyAndCertificate } from 'notification-subscriber/emulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pack, run } from '../../consumers/support/run.js'
import { eventually } from '../../support/eventually.js'
import { serving } from '../../support/listen.js'
import { RunningProgram } from '../../support/running-program.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { pageBlock } from './support/page-blocks.js'
import { callbackToken, lowEnergy, type RunningServer, subscribe } from './support/subscribed.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const nextCommand = 'node_modules/next/dist/bin/next'
const brokenPayload = { ...lowEnergy, payload: { callId: 1, idx: 'first' } }
const unknownType = { ...lowEnergy, type: 'somethingNobodyDocumented', payload: { score: 4.2 } }
const atBuild = { NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' }

describe('Next.js, with the package as it is published', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let next: RunningProgram
  let port: number
  const printed: string[] = []

  beforeAll(async () => {
    folder = await temporaryFolder()
    const { path } = folder
    await cp(join(root, 'test/integration/frameworks/next'), path, { recursive: true })
    await mkdir(join(path, 'app/notifications'))
    await writeFile(join(path, 'app/notifications/route.ts'), pageBlock('Next.js').code)
    await run('npm', ['install', '--no-save', '--include=dev', '--ignore-scripts', await pack(path)], path)
    await run(process.execPath, [nextCommand, 'build'], path, atBuild)
    const command = [nextCommand, 'start', '--hostname', '127.0.0.1', '--port', '0']
    // The build has no secret.
    const variables = { ...atBuild, CALLBACK_TOKEN: callbackToken }
    const onLine = (line: string) => printed.push(line)
    next = new RunningProgram(command, { folder: path, variables, onLine })
    const line = await next.line(/^- Local: +http:/)
    port = Number(line.split(':').at(-1))
  })

  afterAll(async () => {
    await next?.[Symbol.asyncDispose]()
    await folder?.[Symbol.asyncDispose]()
  })

  test('the route of the page calls the handler, and refuses a callback without the secret', async () => {
    await using subscribed = await subscribe((tls) => tlsProxy(tls, port))
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
    await using subscribed = await subscribe((tls) => tlsProxy(tls, port), '/api/notifications')

    expect(await subscribed.emulator.notify(unknownType)).toMatchObject([{ status: 204 }])
    await eventually(() => expect(printed).toContain(`Handled ${unknownType.type} in the pages router`))
    expect(printed.join()).not.toMatch(/API resolved without sending a response/)
  })

  test('with `after` as waitUntil, a handler continues after the answer', async () => {
    await using subscribed = await subscribe((tls) => tlsProxy(tls, port), '/after')

    expect(await subscribed.emulator.notify(unknownType)).toMatchObject([{ status: 204 }])
    await eventually(() => expect(printed).toContain(`Handled ${unknownType.type} after the answer`))
  })
})

/** Ends TLS in front of Next.js, which speaks only HTTP. */
async function tlsProxy(tls: KeyAndCertificate, port: number): Promise<RunningServer> {
  const server = await serving(
    createServer(tls, (socket) => {
      const upstream = connect(port, '127.0.0.1')
      pipeline(socket, upstream, socket, () => {})
    }),
  )
  return { ...server, origin: `https://${server.host}` }
}
