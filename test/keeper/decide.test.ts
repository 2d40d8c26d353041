/** The decisions of the keeper, enumerated: every state of a record, against every state of the service. */
import { describe, expect, test } from 'vitest'
import { type Answer, apply, intentStorage, prepare } from '../../src/keeper/apply.js'
import { type Call, decide, type Facts, type Learnt, nothingLearnt } from '../../src/keeper/decide.js'
import { type Doubt, newUser, type Slot, slotOf, type UserRecord } from '../../src/keeper/user-record.js'

const now = 1_000_000
/** The present target, one whose types overlap with it, and one that can exist next to it. */
const [present, overlapping, apart] = [0, 1, 2]
const recordedId = 5

function facts(given: Partial<Facts> = {}): Facts {
  return {
    now,
    target: present,
    generation: 3,
    hasParameters: true,
    isInTheWay: (target) => target === overlapping,
    hasSurplus: () => false,
    isStoreWorking: true,
    mayUpdate: true,
    replacesExisting: true,
    wantsProof: true,
    wantsProofById: false,
    suspectsEnd: false,
    ...given,
  }
}

function slot(given: Partial<Slot> = {}): Slot {
  return {
    target: present,
    generation: 3,
    id: recordedId,
    isGone: false,
    isTaken: false,
    goneSince: 0,
    doubt: 'none',
    isCreating: false,
    settledFrom: 0,
    provenAt: 500,
    lateUpdate: undefined,
    isUnwritten: false,
    ...given,
  }
}

function recordWith(slots: Slot[], given: Partial<UserRecord> = {}): UserRecord {
  return { ...newUser('alice'), slots, ...given }
}

/** All combinations of the values, each as an object. */
function combinations<Choices extends Record<string, readonly unknown[]>>(
  choices: Choices,
): { [Name in keyof Choices]: Choices[Name][number] }[] {
  const all = Object.entries(choices).reduce<Record<string, unknown>[]>(
    (sofar, [name, values]) => sofar.flatMap((each) => values.map((value) => ({ ...each, [name]: value }))),
    [{}],
  )
  return all as { [Name in keyof Choices]: Choices[Name][number] }[]
}

const doubts: readonly Doubt[] = ['none', 'loaded', 'unanswered']
const both = [false, true] as const

const situations = combinations({
  id: [undefined, recordedId],
  isGone: both,
  doubt: doubts,
  isSettled: both,
  isTaken: both,
  isOverlapped: both,
  isProven: both,
  isRemoved: both,
  hasParameters: both,
  hasSurplus: both,
  isStoreWorking: both,
  replacesExisting: both,
  mayRestore: both,
}).filter(
  ({ id, isGone, isTaken, isOverlapped }) => (id !== undefined || !isGone) && (isTaken || !isOverlapped),
)

function stepIn(situation: (typeof situations)[number]) {
  const { id, isGone, doubt, isSettled, mayRestore } = situation
  const record = recordWith([slot({ id, isGone, doubt, settledFrom: isSettled ? now : now + 1 })], {
    isRemoved: situation.isRemoved,
    restorableFrom: mayRestore ? now : now + 1,
  })
  const learnt: Learnt = {
    takenTargets: new Set(situation.isTaken ? [present] : []),
    overlappedTargets: new Set(situation.isOverlapped ? [present] : []),
    isProven: situation.isProven,
    isMissing: false,
    wasReread: false,
  }
  const { hasParameters, isStoreWorking, replacesExisting, hasSurplus } = situation
  return decide(
    record,
    learnt,
    facts({ hasParameters, isStoreWorking, replacesExisting, hasSurplus: () => hasSurplus }),
  )
}

function callsWhere(condition: (call: Call) => boolean) {
  return situations.flatMap((situation) => {
    const step = stepIn(situation)
    return step.kind === 'call' && condition(step.call) ? [situation] : []
  })
}

describe('in every situation', () => {
  test('something is recreated only while the store works, and when no earlier create can take effect any more', () => {
    const recreates = callsWhere((call) => call.kind === 'create' && call.replaces)
    expect(recreates.length).toBeGreaterThan(100)
    expect(recreates.filter(({ isStoreWorking, isSettled }) => !isStoreWorking || !isSettled)).toEqual([])
  })

  test('something is recreated after a 409 only, but for a parameter that has to vanish', () => {
    const recreates = callsWhere((call) => call.kind === 'create' && call.replaces)
    expect(recreates.filter(({ isTaken, hasSurplus }) => !isTaken && !hasSurplus)).toEqual([])
  })

  test('what may be somebody else’s is recreated at the first meeting only, and only if that is allowed', () => {
    const recreates = callsWhere((call) => call.kind === 'create' && call.replaces)
    const ofOthers = recreates.filter(({ doubt, hasSurplus }) => doubt === 'none' && !hasSurplus)
    expect(ofOthers.length).toBeGreaterThan(0)
    expect(ofOthers.filter(({ id, replacesExisting }) => id !== undefined || !replacesExisting)).toEqual([])
  })

  test('a subscription is ended only while the store works, and only for a user who is removed', () => {
    const ends = callsWhere((call) => call.kind === 'unsubscribe')
    expect(ends.length).toBeGreaterThan(100)
    expect(ends.filter(({ isStoreWorking, isRemoved }) => !isStoreWorking || !isRemoved)).toEqual([])
  })

  test('nothing is restored before its time', () => {
    const creates = callsWhere((call) => call.kind === 'create' && !call.replaces)
    const early = creates.filter(
      ({ id, isRemoved, mayRestore }) => id !== undefined && !isRemoved && !mayRestore,
    )
    expect(early).toEqual([])
  })

  test('without parameters nothing is updated: there is nothing to send', () => {
    expect(callsWhere((call) => call.kind === 'update').every(({ hasParameters }) => hasParameters)).toBe(
      true,
    )
  })

  test('a user who is removed is not done before nothing can exist any more', () => {
    const done = situations.filter((each) => each.isRemoved && stepIn(each).kind === 'done')
    expect(done).toEqual([])
  })
})

/** Everything that matters of the service: at most one subscription per target and user, and what overlaps. */
class NaiveService {
  subscriptions: { id: number; target: number; isForeign: boolean }[]
  #nextId = 100

  constructor(subscriptions: { id: number; target: number; isForeign: boolean }[]) {
    this.subscriptions = subscriptions.map((each) => ({ ...each }))
  }

  answer(call: Call): Answer {
    if (call.kind !== 'create') {
      const index = this.subscriptions.findIndex(({ id }) => id === call.id)
      if (index < 0) return { kind: 'not-found' }
      if (call.kind === 'unsubscribe') this.subscriptions.splice(index, 1)
      return { kind: 'ok' }
    }
    const inTheWay = this.subscriptions.filter(
      ({ target }) => target === call.target || (target !== apart && call.target !== apart),
    )
    if (inTheWay.some(({ target }) => target !== call.target)) return { kind: 'conflict' }
    if (inTheWay.length > 0 && !call.replaces) return { kind: 'conflict' }
    const id = this.#nextId++
    this.subscriptions = this.subscriptions.filter((each) => !inTheWay.includes(each))
    this.subscriptions.push({ id, target: call.target, isForeign: false })
    return { kind: 'created', id }
  }
}

/** Asks and answers until nothing is left to do; returns how it ended and what was asked. */
function play(record: UserRecord, service: NaiveService, given: Facts) {
  const learnt = nothingLearnt()
  const asked: string[] = []
  for (;;) {
    const step = decide(record, learnt, given)
    if (step.kind === 'forget') record.slots = record.slots.filter((each) => each !== step.slot)
    else if (step.kind === 'reread') learnt.wasReread = true
    else if (step.kind !== 'call') return { end: step.kind, asked }
    else {
      const { call } = step
      asked.push(call.kind === 'create' && call.replaces ? 'recreate' : call.kind)
      if (asked.length > 12) return { end: 'endless' as const, asked }
      intentStorage(record, call, given)
      prepare(record, call, given)
      const times = { sentSince: now, sentAt: now, answeredSince: now, answeredAt: now }
      apply(record, call, service.answer(call), { learnt, facts: given, times })
    }
  }
}

const nothing: NaiveService['subscriptions'] = []
const services = {
  nothing,
  'the recorded one': [{ id: recordedId, target: present, isForeign: false }],
  'another identical one': [{ id: 7, target: present, isForeign: true }],
  'one that overlaps': [{ id: 8, target: overlapping, isForeign: true }],
}
const plays = combinations({
  there: Object.keys(services) as (keyof typeof services)[],
  id: [undefined, recordedId],
  isGone: both,
  doubt: doubts,
  isRemoved: both,
  hasParameters: both,
  replacesExisting: both,
  wantsProofById: both,
  // `hidden`: of a create that was never answered.
  old: ['none', 'overlapping', 'apart', 'hidden'] as const,
}).filter(
  ({ there, id, isGone, old }) =>
    (id !== undefined || !isGone) &&
    !(there === 'the recorded one' && (isGone || id === undefined)) &&
    !(old === 'overlapping' && there !== 'nothing'),
)

function playOut(situation: (typeof plays)[number]) {
  const { there, id, isGone, doubt, isRemoved, hasParameters, replacesExisting, wantsProofById, old } =
    situation
  const slots = old === 'overlapping' ? [] : [slot({ id, isGone, doubt })]
  const subscriptions = [...services[there]]
  if (old === 'hidden') slots.push(slot({ target: overlapping, id: undefined, doubt: 'unanswered' }))
  else if (old !== 'none') {
    const target = old === 'overlapping' ? overlapping : apart
    slots.push(slot({ target, id: 6, generation: 2, doubt }))
    subscriptions.push({ id: 6, target, isForeign: false })
  }
  const record = recordWith(slots, { isRemoved })
  const service = new NaiveService(subscriptions)
  const given = facts({ hasParameters, replacesExisting, wantsProofById })
  return { ...play(record, service, given), record, service, situation }
}

describe('against every state of the service', () => {
  const results = plays.map(playOut)
  const where = (condition: (result: (typeof results)[number]) => boolean) =>
    results.filter(condition).map(({ situation, end, asked }) => ({ ...situation, end, asked }))

  test('a chain of calls comes to an end', () => {
    expect(results.length).toBeGreaterThan(300)
    expect(where(({ end }) => end === 'endless' || end === 'wait')).toEqual([])
  })

  test('a wanted user who is done has exactly one subscription, whose id is recorded', () => {
    const wrong = where(({ end, record, service, situation }) => {
      if (situation.isRemoved || end !== 'done') return false
      // Somebody else's passes for ours until the next proof by id: see the next test.
      if (['another identical one', 'one that overlaps'].includes(situation.there)) return false
      const ids = service.subscriptions.map(({ id }) => id)
      return ids.length !== 1 || slotOf(record, present)?.id !== ids[0]
    })
    expect(wrong).toEqual([])
  })

  test('with a proof by id somebody else’s subscription does not pass for ours', () => {
    const mistaken = where(
      ({ end, situation, record, service }) =>
        end === 'done' &&
        !situation.isRemoved &&
        situation.there !== 'nothing' &&
        situation.hasParameters &&
        situation.wantsProofById &&
        !service.subscriptions.some(({ id }) => id === slotOf(record, present)?.id),
    )
    expect(mistaken).toEqual([])
  })

  test('a user who was removed leaves nothing of ours behind', () => {
    const left = where(
      ({ situation, service, record }) =>
        situation.isRemoved &&
        (record.slots.length > 0 || service.subscriptions.some(({ isForeign }) => !isForeign)),
    )
    expect(left).toEqual([])
  })

  test('a subscription that overlaps and is not recorded is never touched', () => {
    const touched = where(
      ({ situation, service }) =>
        // What a hidden create has made looks the same.
        situation.old !== 'hidden' &&
        situation.there === 'one that overlaps' &&
        !service.subscriptions.some(({ id }) => id === 8),
    )
    expect(touched).toEqual([])
  })

  test('a conflict is told where a subscription of others is in the way, and nowhere else', () => {
    const conflicts = where(({ end }) => end === 'conflict')
    expect(conflicts.length).toBeGreaterThan(20)
    expect(conflicts.filter(({ there }) => there === 'nothing' || there === 'the recorded one')).toEqual([])
  })

  test('after a lost answer a subscription that only overlaps does not pass for ours', () => {
    const doubtful = where(
      ({ situation }) =>
        situation.old !== 'hidden' &&
        situation.there === 'one that overlaps' &&
        situation.doubt === 'unanswered' &&
        !situation.isRemoved,
    )
    expect(doubtful.length).toBeGreaterThan(0)
    expect(doubtful.filter(({ end }) => end !== 'conflict')).toEqual([])
  })

  test('what may have ended with another one is restored by a single call, even where a proof would go by id', () => {
    for (const doubt of ['none', 'loaded'] as const) {
      const given = facts({ wantsProofById: true, suspectsEnd: true })
      const record = recordWith([slot({ doubt })])
      expect(play(record, new NaiveService([]), given)).toMatchObject({ asked: ['create'] })
    }
  })

  test('what may have ended with another one and was loaded is not proven by a 409, but by the next visit', () => {
    const foreign = new NaiveService([{ id: 7, target: present, isForeign: true }])
    const record = recordWith([slot({ doubt: 'loaded', provenAt: 500 })])
    expect(play(record, foreign, facts({ suspectsEnd: true }))).toEqual({ end: 'done', asked: ['create'] })
    expect(slotOf(record, present)?.provenAt).toBe(500)
    expect(play(record, foreign, facts()).asked[0]).toBe('update')
  })

  test('in quiet a proof is a single call', () => {
    const quiet = where(
      ({ situation }) =>
        situation.there === 'the recorded one' &&
        situation.old === 'none' &&
        situation.doubt === 'none' &&
        !situation.isRemoved,
    )
    expect(quiet.length).toBeGreaterThan(0)
    for (const { asked, hasParameters, wantsProofById } of quiet) {
      expect(asked).toEqual([hasParameters && wantsProofById ? 'update' : 'create'])
    }
  })
})

describe('an answer that is lost', () => {
  const lost = (call: Call, record: UserRecord) => {
    const given = facts()
    prepare(record, call, given)
    const times = { sentSince: now, sentAt: now, answeredSince: now + 10, answeredAt: now + 10 }
    return apply(record, call, { kind: 'lost' }, { learnt: nothingLearnt(), facts: given, times })
  }

  test('of a create is a doubt for two minutes from when it was given up, and has to be stored', () => {
    const record = recordWith([slot()])
    const effects = lost({ kind: 'create', target: present, replaces: false }, record)
    expect(record.slots[0]).toMatchObject({
      id: recordedId,
      doubt: 'unanswered',
      settledFrom: now + 10 + 120_000,
    })
    expect(effects).toEqual({ mustSave: true })
  })

  test('and has made one that stands in the way of the present types is found and ended', () => {
    const record = recordWith([slot({ target: overlapping, id: undefined, doubt: 'unanswered' })])
    const service = new NaiveService([{ id: 9, target: overlapping, isForeign: false }])
    expect(play(record, service, facts())).toEqual({
      end: 'done',
      asked: ['create', 'recreate', 'create', 'recreate', 'unsubscribe', 'create'],
    })
    expect(service.subscriptions).toHaveLength(1)
  })

  test('keeps a user who is removed from being forgotten: what it made is ended when it can be known', () => {
    const record = recordWith([slot()], { isRemoved: true })
    lost({ kind: 'create', target: present, replaces: false }, record)
    const service = new NaiveService([{ id: recordedId, target: present, isForeign: false }])
    expect(play(record, service, facts())).toMatchObject({ end: 'wait', asked: ['unsubscribe'] })
    // The late create has landed meanwhile.
    service.subscriptions.push({ id: 9, target: present, isForeign: false })
    const later = facts({ now: now + 121_000 })
    expect(play(record, service, later)).toMatchObject({
      end: 'done',
      asked: ['create', 'recreate', 'unsubscribe'],
    })
    expect(service.subscriptions).toEqual([])
  })
})
