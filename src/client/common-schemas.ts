/** The schemas that a client's options and those of a call are made of. */
import * as z from 'zod'
import { maxDelayMs } from '../shared/max-delay.js'
import { urlProblem } from '../shared/url-problem.js'

export function timeoutSchema() {
  return z.number().positive().max(maxDelayMs)
}

/** The schema of `retry`. `false` is read as one attempt, because a union would report no problem inside the object. */
export function retrySchema() {
  return z.preprocess(
    (retry) => (retry === false ? { maxAttempts: 1 } : retry),
    z.strictObject(
      {
        maxAttempts: z.int().positive().optional(),
        baseDelayMs: z.number().nonnegative().max(maxDelayMs).optional(),
        maxDelayMs: z.number().nonnegative().max(maxDelayMs).optional(),
      },
      { error: ({ code }) => (code === 'invalid_type' ? 'must be an object or false' : undefined) },
    ),
  )
}

/** The base address of a server, as text or as a `URL`; given out parsed. */
export function addressSchema(allowInsecureLoopback: boolean) {
  return z
    .union([z.string(), z.instanceof(URL)], 'must be a URL')
    .superRefine((address, context) => {
      const problem = urlProblem(address, allowInsecureLoopback) ?? basePathProblem(String(address))
      if (problem !== undefined) context.addIssue({ code: 'custom', message: problem })
    })
    .transform((address) => new URL(address))
}

function basePathProblem(address: string): string | undefined {
  return /[?#]/.test(address) ? 'must not contain a query or a fragment: paths are added to it' : undefined
}

export function functionFor<Given = unknown>(what: string) {
  return z.custom<Given>((value) => typeof value === 'function', `must be ${what}`)
}
