/** Faults on request, for a user's own resilience tests: the next n answers of an endpoint go wrong. */
import * as z from 'zod'
import { InvalidRequestError } from '../../errors.js'
import { formatIssues, issuesOf } from '../../shared/issues.js'
import { maxDelayMs } from '../../shared/max-delay.js'

/** The endpoints: token (interface.md 4.1), create (4.2), update and unsubscribe (4.3). */
export type EmulatorOperation = 'token' | 'create' | 'update' | 'unsubscribe'

/** What happens instead of the normal answer. */
export type Fault =
  /** The request is not processed; this answer goes out, with an empty body unless one is given. */
  | {
      /** 200 to 599. */
      readonly status: number
      /** Default: none. */
      readonly body?: string | undefined
      /** Default: none. */
      readonly headers?: Readonly<Record<string, string>> | undefined
    }
  /** Nothing happens for so many milliseconds; then the request is processed and answered normally. */
  | {
      /** Milliseconds. */
      readonly delayMs: number
    }
  /** The connection breaks without an answer, before or after the request took effect. */
  | {
      /** Whether the request takes effect. */
      readonly reset: 'before-processing' | 'after-processing'
    }
  /**
   * The request is processed and answered with the right status and the wrong body: this text, or with
   * `true` the first half of the right one. Not for `unsubscribe`: its answer, 204, cannot have a body.
   */
  | {
      /** The text, or `true`. */
      readonly malformedBody: string | true
    }

const operationSchema = z.enum(['token', 'create', 'update', 'unsubscribe'])

/** By the field that tells them apart. */
const faultSchemas = {
  status: z.strictObject({
    status: z.int().min(200).max(599),
    body: z.string().optional(),
    headers: z.record(z.string(), z.string()).refine(canBeHeaders, 'are not HTTP headers').optional(),
  }),
  delayMs: z.strictObject({ delayMs: z.number().min(0).max(maxDelayMs) }),
  reset: z.strictObject({ reset: z.enum(['before-processing', 'after-processing']) }),
  malformedBody: z.strictObject({
    malformedBody: z.union([z.string(), z.literal(true)], 'must be a text or true'),
  }),
}

/** Chosen by what is given, so that problems are told of that kind and not of all. */
function faultSchemaFor(fault: unknown): z.ZodType<object> {
  const schemas = Object.entries(faultSchemas).filter(([field]) => field in Object(fault))
  const [only] = schemas.length === 1 ? schemas : []
  return only?.[1] ?? z.never('must be one of { status }, { delayMs }, { reset } and { malformedBody }')
}

/** The faults that are still to happen, in the order in which they were asked for. */
export class FaultPlan {
  readonly #planned: { operation: EmulatorOperation; fault: Fault; remaining: number }[] = []

  /** Throws `InvalidRequestError` for a fault that could never happen. */
  add(operation: EmulatorOperation, fault: Fault, times: number): void {
    refuseIfInvalid(operation, fault, times)
    this.#planned.push({ operation, fault, remaining: times })
  }

  /** The fault for the answer that is due now, which it uses up. */
  take(operation: string): Fault | undefined {
    const index = this.#planned.findIndex((planned) => planned.operation === operation)
    const planned = this.#planned[index]
    if (planned === undefined) return undefined
    planned.remaining--
    if (planned.remaining === 0) this.#planned.splice(index, 1)
    return planned.fault
  }

  clear(): void {
    this.#planned.length = 0
  }
}

/**
 * How a broken connection looks to a caller of `emulator.fetch`: the error that a global `fetch` gives for
 * one. The HTTPS server destroys the socket for it, msw answers with a network error.
 */
export class ConnectionReset extends TypeError {
  constructor() {
    super('fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) })
  }
}

function refuseIfInvalid(operation: EmulatorOperation, fault: Fault, times: number): void {
  const call = z.object({ operation: operationSchema, fault: faultSchemaFor(fault), times: z.int().min(1) })
  const checked = call
    .refine(({ operation, fault }) => !(operation === 'unsubscribe' && 'malformedBody' in fault), {
      path: ['fault', 'malformedBody'],
      message: 'is not possible for unsubscribe: its answer, 204, cannot have a body',
    })
    .safeParse({ operation, fault, times })
  if (checked.success) return
  const issues = issuesOf(checked.error)
  throw new InvalidRequestError(`The fault cannot be injected: ${formatIssues(issues)}.`, { issues })
}

function canBeHeaders(headers: Record<string, string>): boolean {
  try {
    new Headers(headers)
    return true
  } catch {
    return false
  }
}
