/** The service as far as creating needs it: tokens and subscriptions, by HTTPS on loopback. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { startEmulator } from '../../../dist/emulator/index.js'
import { ScriptedServer } from '../../support/scripted-server.js'
import { serve } from '../processes.js'

function answer(status: string, body: object): string {
  const text = JSON.stringify(body)
  return `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
}

const token = answer('200 OK', { access_token: 'a'.repeat(800), token_type: 'Bearer', expires_in: 3600 })

await using emulator = await startEmulator()
let subscriptions = 0
const { origin } = await ScriptedServer.listen(emulator.tls, async (connection) => {
  const request = await connection.request()
  const created = () => answer('201 Created', { subscription_id: ++subscriptions })
  await connection.write(request.startsWith('POST /auth/') ? token : created())
})

const caFile = join(mkdtempSync(join(tmpdir(), 'bench-')), 'ca.pem')
writeFileSync(caFile, emulator.ca)
process.on('exit', () => rmSync(dirname(caFile), { recursive: true }))

const functions = { address: () => ({ origin, caFile }) }
export type SubscriptionServerFunctions = typeof functions
serve(functions)
