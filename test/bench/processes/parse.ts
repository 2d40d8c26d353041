/** One way to read a callback's body, measured alone. */

import { parseDelivery } from '../../../dist/webhooks/index.js'
import { delivery } from '../deliveries.js'
import { type Cost, costOf } from '../measure.js'
import { serve } from '../processes.js'
import { compiledAjv, zodDelivery } from '../validators.js'

type Parse = (body: string) => unknown

export type Parser = keyof typeof parsers

const parsers = {
  ours: (): Parse => parseDelivery,
  'JSON.parse': (): Parse => JSON.parse,
  'JSON.parse + Ajv': () => {
    const validate = compiledAjv()
    return checked((value) => validate(value))
  },
  'JSON.parse + zod': () => checked((value) => zodDelivery.safeParse(value).success),
} as const satisfies Record<string, () => Parse>

function checked(isValid: (value: unknown) => boolean): Parse {
  return (body) => {
    const value: unknown = JSON.parse(body)
    if (!isValid(value)) throw new Error('the body is no delivery')
    return value
  }
}

const name = process.argv[2] as Parser
const parse = parsers[name]()

parse(delivery)
if (name !== 'JSON.parse' && isAccepted(delivery.replace('"idx":0', '"idx":0.5'))) {
  throw new Error(`${name} accepts what is no delivery`)
}

function isAccepted(body: string): boolean {
  try {
    parse(body)
    return true
  } catch {
    return false
  }
}

serve({ run: (runMs: number): Promise<Cost> => costOf(async () => parseFor(runMs)) })

/** Looks at the clock only now and then, because that costs as much as parsing. */
function parseFor(runMs: number): number {
  const endsAt = performance.now() + runMs
  let calls = 0
  while (performance.now() < endsAt) {
    for (let index = 0; index < 500; index++) parse(delivery)
    calls += 500
  }
  return calls
}
