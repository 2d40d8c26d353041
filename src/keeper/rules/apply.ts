/** What a reply of the service means for the record and the routes. A pure rule. */
import type { RouteName } from '../../shared/routes.js'
import type { KeeperGap } from '../types.js'
import { type Facts, type Findings, hasFormerNames, type PlannedRequest } from './decide.js'
import { nextCount, type UserRecord, union } from './record.js'

/**
 * `unreadable`: a create succeeded, but its answer has no readable id. Of requests with an id: `gone`: no subscription has the
 * id. `not-found`: the same, or a wrong route. `no-route`: the service has no such route. `unclear`: any other refusal,
 * because the interface leaves open how a service answers for an ended subscription.
 */
export type Reply =
  | { readonly kind: 'created'; readonly id: number }
  | { readonly kind: 'ok' | 'conflict' }
  | { readonly kind: 'gone' | 'not-found' | 'no-route' | 'unclear' | 'unreadable'; readonly error?: unknown }

/** A request, its reply, and what was known when it was sent. Times are of the wall clock. */
export interface Answered<Request = PlannedRequest> {
  readonly request: Request
  readonly reply: Reply
  readonly sentAt: number
  readonly answeredAt: number
  readonly findings: Findings
  readonly facts: Facts
}

type AnsweredCreate = Answered<Extract<PlannedRequest, { spec: string }>>

export interface Applied {
  /** The record without a claim. */
  readonly record: UserRecord
  readonly findings: Findings
  /** What the reply proves: the subscription's id, or only its existence. */
  readonly proven?: 'id' | 'existence'
  /** Whether a user was subscribed for the first time. */
  readonly isCreated?: boolean
  /** An interval in which notifications may have been lost: the user was restored. */
  readonly gap?: KeeperGap
  readonly confirms?: RouteName
  readonly refutes?: RouteName
  /** Whether the service refuses a request for a subscription that exists. */
  readonly isRefused?: boolean
}

/** Cleared when it is certain that the subscription with the recorded id exists. */
const cleared = { idUnsure: undefined, endedByUs: undefined, conflictAt: undefined }

export function apply(record: UserRecord, answered: Answered): Applied {
  const { request } = answered
  return 'id' in request
    ? applyById(record, request.kind, answered)
    : applyCreate(record, { ...answered, request })
}

function applyCreate(record: UserRecord, answered: AnsweredCreate): Applied {
  const { request, reply } = answered
  switch (reply.kind) {
    case 'created':
      return applyCreated(record, answered, reply.id)
    case 'unreadable': {
      // An earlier create may have taken effect, and its subscription may have ended before this request.
      const provenAt = record.provenAt ?? (record.idUnsure ? undefined : answered.sentAt)
      const tried = { ...withReplacementCounted(record, answered), id: undefined, spec: request.spec }
      return { record: { ...tried, idUnsure: true, provenAt }, findings: withTaken(answered) }
    }
    default:
      return applyConflict(record, answered)
  }
}

function applyById(record: UserRecord, kind: RouteName, answered: Answered): Applied {
  const { facts, findings, reply, sentAt } = answered
  switch (reply.kind) {
    case 'ok': {
      if (kind === 'update') {
        const names = union(record.names, facts.names)
        const updated = { ...record, ...cleared, names, generation: facts.generation, provenAt: sentAt }
        return { record: updated, findings: {}, proven: 'id', confirms: kind }
      }
      // The first 2xx of a route that ends nothing looks the same: a create shows whether the subscription has ended.
      if (!facts.isUnsubscribeConfirmed && !findings.isIdNew)
        return { record: { ...record, endedByUs: true }, findings: { seemsEnded: true } }
      return { record: { ...record, id: undefined, endedByUs: true }, findings: {}, confirms: kind }
    }
    case 'gone': {
      // After an unsubscribe the gap is reported when the user is subscribed again.
      const ended = { ...record, id: undefined }
      return { record: kind === 'update' ? ended : { ...ended, endedByUs: true }, findings: {} }
    }
    case 'no-route':
      return { record, findings: { ...findings, inconclusive: kind }, refutes: kind }
    case 'unclear':
      if (findings.isIdNew) return { record, findings, isRefused: true }
      return { record, findings: { ...findings, inconclusive: kind, isRefused: true } }
    default:
      // Only an id that the service gave just now cannot be out of date.
      if (findings.isIdNew) return { record, findings: {}, refutes: kind }
      return { record, findings: { ...findings, inconclusive: kind } }
  }
}

function applyConflict(record: UserRecord, answered: AnsweredCreate): Applied {
  const { request, facts, findings, sentAt } = answered
  const found = withTaken(answered)
  // A recreate replaces an identical subscription: after a 409 there is none.
  if (request.kind === 'recreate')
    return {
      record: { ...withReplacementCounted(record, answered), id: undefined, idUnsure: undefined },
      findings: found,
    }
  if (record.id === undefined || record.idUnsure) return { record, findings: found }
  const { inconclusive, isRefused, seemsEnded } = findings
  // A subscription with an old spec is to be ended: its proof does not count, and the gap begins with the proof before.
  const provenAt = request.spec === facts.spec ? { provenAt: sentAt } : {}
  const exists = {
    record: { ...record, endedByUs: undefined, ...provenAt },
    findings: found,
    proven: 'existence',
  } as const
  if (seemsEnded) return { ...exists, findings: {}, refutes: 'unsubscribe' }
  if (inconclusive === undefined || !facts.mayUpdate) return exists
  if (isRefused) return { ...exists, isRefused }
  // The update has not found a subscription that exists.
  if (facts.isIdKnown) return { ...exists, refutes: inconclusive }
  return { record: { ...record, idUnsure: true }, findings: found }
}

/** A new subscription: the user's first, one made only to be ended, or the end of a gap. */
function applyCreated(before: UserRecord, answered: AnsweredCreate, id: number): Applied {
  const { answeredAt, request, facts, findings, sentAt } = answered
  const { inconclusive, seemsEnded } = findings
  const record = withReplacementCounted(before, answered)
  const { provenAt, restoredCount, restores, username } = record
  const given = { id, spec: request.spec, names: facts.names, generation: facts.generation, provenAt: sentAt }
  const made = { ...record, ...cleared, ...given }
  const common = {
    findings: { isIdNew: true, inconclusive },
    ...(seemsEnded && { confirms: 'unsubscribe' as const }),
  }
  // Created only to be ended: if the user comes back, the gap begins with the proof before.
  if (!facts.isWanted) return { ...common, record: { ...made, provenAt } }
  const isFirst = provenAt === undefined && !record.idUnsure && request.kind === 'create'
  if (isFirst) return { ...common, record: made, proven: 'id', isCreated: true }
  const cause = causeOf(record, answered)
  const lastProvenAt = provenAt !== undefined && provenAt <= answeredAt ? provenAt : undefined
  const gap = { username, subscriptionId: id, lastProvenAt, restoredAt: answeredAt, cause }
  const counted = { ...made, restoredCount: nextCount(restoredCount) }
  const restored =
    cause === 'ended' ? { ...counted, restores: nextCount(restores), restoredAt: answeredAt } : counted
  return { ...common, record: restored, proven: 'id', gap }
}

function causeOf(record: UserRecord, { request, facts }: AnsweredCreate): KeeperGap['cause'] {
  if (record.endedByUs || record.spec !== request.spec || hasFormerNames(record, facts)) return 'changed'
  return request.kind === 'create' && record.provenAt !== undefined ? 'ended' : 'replaced'
}

/** One replacement a day. Replacing what may be the keeper's own is free, unless the service refused that. */
function withReplacementCounted(record: UserRecord, { request, reply, answeredAt }: Answered): UserRecord {
  const usesUpTheDay = request.kind === 'recreate' && (!record.idUnsure || reply.kind === 'conflict')
  return usesUpTheDay ? { ...record, replacedAt: answeredAt } : record
}

function withTaken({ request, facts, findings }: AnsweredCreate): Findings {
  return request.spec === facts.spec ? { ...findings, isTaken: true } : findings
}
