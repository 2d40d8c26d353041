/** Deliveries are parsed where code generation is forbidden. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const program = `
import * as z from 'zod'
import { createDeliveryParser, safeParseDelivery, sampleDelivery } from './src/webhooks/index.ts'

let isForbidden = false
try { new Function('') } catch { isForbidden = true }
const { body } = sampleDelivery('lowEnergyAgentOpened')
const { safeParse } = createDeliveryParser({ payloads: { cxScoreUpdated: z.object({ score: z.coerce.number() }) } })
const scored = safeParse(sampleDelivery('cxScoreUpdated', { payload: { score: '87' } }).body)
const refused = safeParseDelivery(body.replace('"idx":0', '"idx":0.5'))
const { success } = safeParseDelivery(body)
console.log(JSON.stringify({ isForbidden, success, payload: scored.data.notification.payload, issues: refused.error.issues }))
`

test('deliveries are parsed and refused where code generation is forbidden, as on edge runtimes', async () => {
  const flags = ['--disallow-code-generation-from-strings', '--import', 'tsx', '--input-type=module']
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, '--eval', program], { cwd })
  expect(JSON.parse(stdout)).toEqual({
    isForbidden: true,
    success: true,
    payload: { score: 87 },
    issues: [{ path: ['notification', 'payload', 'idx'], message: expect.any(String) }],
  })
})
