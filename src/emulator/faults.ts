/** Faults for a user's resilience tests: the next answers of an endpoint, or the next callbacks, fail. */
import * as z from 'zod'
import { headerName, headerValue } from '../shared/headers.js'
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
      /** Whether the request takes effect. */
      readonly reset: 'before-processing' | 'after-processing'
    }
  /** The request is processed and answered with the right status and a wrong body. Not for `unsubscribe`, whose 204 has none. */
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
  /** The callback fails. With `after-processing` the receiver gets it, and only its answer is lost. */
  | {
      /** Whether the receiver gets the callback. */
      readonly reset: 'before-processing' | 'after-processing'
    }
  /** The receiver gets the callback at once, its answer comes later: after `callbackTimeoutMs` the callback has failed. */
  | {
      /** How much later the answer comes, in milliseconds. */
      readonly delayMs: number
    }

interface Injected<Operation, Kind> {
  readonly operation: Operation
  readonly fault: Kind
  /** How many times are left; `Infinity` until the fault is cleared. */
  readonly times: number
  /** Missing for requests, and for callbacks of any subscription. */
  readonly subscriptionId?: number | undefined
}

export type InjectedFault = Injected<EmulatorOperation, Fault> | Injected<'callback', CallbackFault>

/** The injected faults that are still to happen, in the order of injection. */
export class Faults {
  #injected: readonly InjectedFault[] = []
  readonly #onChange: () => void

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  /** @throws `InvalidRequestError` for a fault that could never happen */
  inject(operation: unknown, fault: unknown, options: { readonly times?: unknown }): void {
    const schema = operation === 'callback' ? callbackSchema(fault) : requestSchema(fault)
    // JavaScript callers may pass anything, such as the number alone.
    const isObject = Object(options) === options
    const given = isObject ? { ...options, operation, fault, times: options.times ?? 1 } : options
    const injected = validate<InjectedFault>(schema, given, invalidRequest('The fault cannot be injected'))
    this.#change([...this.#injected, injected])
  }

  takeForRequest(operation: string): Fault | undefined {
    return this.#take((each) => each.operation === operation)?.fault
  }

  takeForCallback(subscriptionId: number): CallbackFault | undefined {
    const isOfIt = (id = subscriptionId) => id === subscriptionId
    const used = this.#take((each) => each.operation === 'callback' && isOfIt(each.subscriptionId))
    return used?.operation === 'callback' ? used.fault : undefined
  }

  clear(): void {
    this.#change([])
  }

  list(): readonly InjectedFault[] {
    return this.#injected
  }

  /** Uses up one time of the first fault that fits. */
  #take(fits: (injected: InjectedFault) => boolean): InjectedFault | undefined {
    const used = this.#injected.find(fits)
    if (used === undefined) return undefined
    const left = used.times === 1 ? [] : [{ ...used, times: used.times - 1 }]
    this.#change(this.#injected.flatMap((each) => (each === used ? left : [each])))
    return used
  }

  #change(injected: readonly InjectedFault[]): void {
    this.#injected = injected
    this.#onChange()
  }
}

/** A broken connection, as `fetch` reports it. The HTTPS server destroys the socket. */
export class ConnectionReset extends TypeError {
  /** @param reason - why the connection broke, for the emulator's own record of the request */
  constructor(readonly reason: string) {
    super('fetch failed', { cause: Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) })
  }
}

const times = z.union(
  [z.int().min(1), z.literal(Number.POSITIVE_INFINITY)],
  'must be a whole number from 1 on, or Infinity',
)

/** The schema of each kind of fault, by the field that only this kind has; for callbacks `status` is another. */
const faultSchemas = {
  status: z.strictObject({
    status: z.int().min(200).max(599),
    body: z.string().optional(),
    headers: z.record(z.string(), z.string()).refine(areHeaders, 'are not HTTP headers').optional(),
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

function requestSchema(fault: unknown) {
  return z
    .strictObject({
      operation: z.enum(
        ['token', 'create', 'update', 'unsubscribe'],
        'must be token, create, update, unsubscribe or callback',
      ),
      fault: schemaFor<Fault>(fault, faultSchemas),
      times,
      subscriptionId: z.undefined('is for callbacks only').optional(),
    })
    .refine(({ operation, fault }) => !(operation === 'unsubscribe' && 'malformedBody' in fault), {
      path: ['fault', 'malformedBody'],
      message: 'is not possible for unsubscribe: its answer, 204, cannot have a body',
    })
}

function callbackSchema(fault: unknown) {
  const { delayMs, reset } = faultSchemas
  return z.strictObject({
    operation: z.literal('callback'),
    fault: schemaFor<CallbackFault>(fault, { status: callbackStatus, delayMs, reset }),
    times,
    subscriptionId: z.int().min(1).optional(),
  })
}

/** The schema of one kind, chosen by the field that is given, so that issues name the fields of that kind only. */
function schemaFor<Kind>(fault: unknown, schemas: Record<string, z.ZodType<Kind>>): z.ZodType<Kind> {
  const [first, ...others] = Object.entries(schemas).filter(([field]) => field in Object(fault))
  if (first !== undefined && others.length === 0) return first[1]
  const kinds = Object.keys(schemas).map((field) => `{ ${field} }`)
  return z.never(`must be one of ${kinds.slice(0, -1).join(', ')} and ${kinds.at(-1)}`)
}

function areHeaders(headers: Readonly<Record<string, string>>): boolean {
  return Object.entries(headers).every(([name, value]) => headerName.test(name) && headerValue.test(value))
}

/** What a fault does, in few words. */
export function faultInWords(fault: Fault | CallbackFault): string {
  if ('status' in fault) return `status ${fault.status}`
  if ('delayMs' in fault) return `answer ${durationInWords(fault.delayMs)} late`
  if ('malformedBody' in fault) return 'broken body'
  return fault.reset === 'before-processing' ? 'connection lost at once' : 'answer lost'
}

/** A fault that is still to happen. */
export function injectedInWords({ operation, fault, times, subscriptionId }: InjectedFault): string {
  const what = operation === 'callback' ? 'callback' : `${operation} request`
  const several = times === Number.POSITIVE_INFINITY ? `Every ${what}` : `The next ${times} ${what}s`
  const of = subscriptionId === undefined ? '' : ` of subscription ${subscriptionId}`
  return `${times === 1 ? `The next ${what}` : several}${of}: ${faultInWords(fault)}`
}
