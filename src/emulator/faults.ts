/** Faults for a user's resilience tests: the next answers of an endpoint, or the next callbacks, fail. */
import * as z from 'zod'
import { headerName, headerValue } from '../shared/headers.js'
import { endpoints } from '../shared/routes.js'
import { invalidRequest, validate } from '../shared/validation.js'
import { maxDelayMs } from '../shared/waits.js'
import { durationInWords } from './words.js'

/** The endpoints: token, create, update and unsubscribe (docs/service.md, Endpoints). */
export type EmulatorOperation = 'token' | 'create' | 'update' | 'unsubscribe'

/** What happens to a request instead of the normal answer. */
export type Fault =
  /** The request is not processed, and this answer is sent. */
  | {
      /** HTTP status of the answer, 200 to 599. */
      readonly status: number
      /** The body of the answer. Default: an empty one. */
      readonly body?: string | undefined
      /** The headers of the answer. Default: none. */
      readonly headers?: Readonly<Record<string, string>> | undefined
    }
  /** The request waits, and is then processed and answered normally. */
  | {
      /** How long the request waits, in milliseconds. */
      readonly delayMs: number
    }
  /** The connection breaks without an answer, before or after the request took effect. */
  | {
      readonly reset: 'before-processing' | 'after-processing'
    }
  /** The request is processed and answered with the right status and a wrong body. Not for `unsubscribe`, whose answer has no body. */
  | {
      /** The text of the body, or `true` for the first half of the right one. */
      readonly malformedBody: string | true
    }

/** What happens to a callback. A failed callback counts as a failure of its subscription. */
export type CallbackFault =
  /** Not sent; counts as if answered with this status. */
  | {
      /** HTTP status of that answer, 300 to 599. */
      readonly status: number
    }
  /**
   * With `after-processing` the receiver gets the callback, and only its answer is lost. After a delay of more than
   * `callbackTimeoutMs` the callback has failed.
   */
  | Extract<Fault, { reset: string } | { delayMs: number }>

/** What can fail, in words. */
export const faultTargets: Readonly<Record<string, string>> = {
  callback: 'callback',
  ...Object.fromEntries(Object.keys(endpoints).map((operation) => [operation, `${operation} request`])),
}

export interface InjectedFault {
  readonly operation: string
  readonly fault: Fault
  /** How many times are left; `Infinity` until the fault is cleared. */
  readonly times: number
  /** Missing for requests, and for callbacks of any subscription. */
  readonly subscriptionId?: number | undefined
}

export class Faults {
  #injected: readonly InjectedFault[] = []

  /** @throws `InvalidRequestError` for a fault that could never happen */
  inject(operation: unknown, fault: unknown, options: object): void {
    const given = { ...options, operation, fault }
    const invalid = invalidRequest('The fault cannot be injected')
    this.#injected = [...this.#injected, validate(schemaFor(operation, fault), given, invalid)]
  }

  /** Takes the first fault for a request, or for a callback to a subscription, once. */
  take(operation: 'callback', subscriptionId: number): CallbackFault | undefined
  take(operation: string): Fault | undefined
  take(operation: string, subscriptionId?: number): Fault | undefined {
    const used = this.#injected.find(
      (each) => each.operation === operation && (each.subscriptionId ?? subscriptionId) === subscriptionId,
    )
    if (used === undefined) return undefined
    const left = used.times === 1 ? [] : [{ ...used, times: used.times - 1 }]
    this.#injected = this.#injected.flatMap((each) => (each === used ? left : [each]))
    return used.fault
  }

  clear(): void {
    this.#injected = []
  }

  list(): readonly InjectedFault[] {
    return this.#injected
  }
}

/** A broken connection, as `fetch` reports it. The HTTPS server destroys the socket. */
export class ConnectionReset extends TypeError {
  /** @param reason - why the connection broke, for the emulator's own record of the request */
  constructor(readonly reason: string) {
    super('fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) })
  }
}

const times = z
  .union(
    [z.int().min(1), z.literal(Number.POSITIVE_INFINITY)],
    'must be a whole number from 1 on, or Infinity',
  )
  .default(1)

const kinds = {
  status: z.strictObject({
    status: z.int().min(200).max(599),
    body: z.string().optional(),
    headers: z
      .record(z.string().regex(headerName), z.string().regex(headerValue, 'cannot be sent in a header'))
      .optional(),
  }),
  delayMs: z.strictObject({ delayMs: z.number().min(0).max(maxDelayMs) }),
  reset: z.strictObject({ reset: z.enum(['before-processing', 'after-processing']) }),
  malformedBody: z.strictObject({
    malformedBody: z.union([z.string(), z.literal(true)], 'must be text or true'),
  }),
}

const callbackStatus = z.strictObject({
  status: z.int().min(300, 'must be 300 to 599: a callback that is answered with 2xx succeeds').max(599),
})

function schemaFor(operation: unknown, fault: unknown) {
  const isCallback = operation === 'callback'
  const { malformedBody, ...withoutBody } = kinds
  const requestKinds = operation === 'unsubscribe' ? withoutBody : kinds
  const possible = isCallback ? { ...withoutBody, status: callbackStatus } : requestKinds
  return z.strictObject({
    operation: z.enum(Object.keys(faultTargets), `must be one of ${Object.keys(faultTargets).join(', ')}`),
    fault: kindOf(fault, possible),
    times,
    subscriptionId: isCallback ? z.int().min(1).optional() : z.undefined('is for callbacks only').optional(),
  })
}

/** Chosen by the field that is given, so that issues name the fields of that kind only. */
function kindOf(fault: unknown, kinds: Readonly<Record<string, z.ZodType<Fault>>>): z.ZodType<Fault> {
  const [first, ...others] = Object.entries(kinds).filter(([field]) => field in Object(fault))
  if (first !== undefined && others.length === 0) return first[1]
  return z.never(`must be one of { ${Object.keys(kinds).join(' }, { ')} }`)
}

/** What a fault does, in few words. */
export function faultInWords(fault: Fault | CallbackFault): string {
  if ('status' in fault) return `status ${fault.status}`
  if ('delayMs' in fault) return `answer ${durationInWords(fault.delayMs)} late`
  if ('malformedBody' in fault) return 'broken body'
  return fault.reset === 'before-processing' ? 'connection lost at once' : 'answer lost'
}

export function injectedInWords({ operation, fault, times, subscriptionId }: InjectedFault): string {
  const what = faultTargets[operation]
  const several = times === Number.POSITIVE_INFINITY ? `Every ${what}` : `The next ${times} ${what}s`
  const of = subscriptionId === undefined ? '' : ` of subscription ${subscriptionId}`
  return `${times === 1 ? `The next ${what}` : several}${of}: ${faultInWords(fault)}`
}
