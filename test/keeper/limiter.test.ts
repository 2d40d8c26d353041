import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Failure } from '../../src/keeper/call.js'
import { CircuitBreaker, Limiter } from '../../src/keeper/limiter.js'
import { Problems } from '../../src/keeper/reporter.js'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const failure: Failure = { kind: 'SERVICE', error: new Error('down') }

function breaker(users = 10) {
  const reported: string[] = []
  const problems = new Problems(({ code, resolved }) => reported.push(resolved ? `${code} resolved` : code))
  return { circuit: new CircuitBreaker(problems, () => users), reported }
}

function open(circuit: CircuitBreaker): void {
  for (const name of ['alice', 'bob', 'carol']) circuit.failed(name, failure)
}

describe('the limiter', () => {
  async function enteredWithin(ms: number, options: { concurrency: number; maxRequestsPerSecond: number }) {
    const limiter = new Limiter(breaker().circuit, options)
    let entered = 0
    for (let index = 0; index < 1_000; index++) {
      void limiter.enter('alice').then(() => {
        entered++
        setTimeout(() => limiter.leave(), 1)
      })
    }
    await vi.advanceTimersByTimeAsync(ms)
    return entered
  }

  test.each([
    [50, 50],
    [5, 5],
    [1, 1],
    [0.5, 1],
  ])('lets %d requests a second through', async (maxRequestsPerSecond, expected) => {
    expect(await enteredWithin(999, { concurrency: 100, maxRequestsPerSecond })).toBe(expected)
  })

  test.each([1e12, Number.POSITIVE_INFINITY])('lets any number through at %d a second', async (rate) => {
    expect(await enteredWithin(20, { concurrency: 100, maxRequestsPerSecond: rate })).toBe(1_000)
  })

  test('lets no more through than may be in flight', async () => {
    const limiter = new Limiter(breaker().circuit, { concurrency: 2, maxRequestsPerSecond: 1_000 })
    const entered: number[] = []
    for (const index of [1, 2, 3]) void limiter.enter('alice').then(() => entered.push(index))
    await vi.advanceTimersByTimeAsync(1_000)
    expect(entered).toEqual([1, 2])
    limiter.leave()
    await vi.advanceTimersByTimeAsync(1)
    expect(entered).toEqual([1, 2, 3])
  })

  test('lets the test alone through in an outage, also of those who wait', async () => {
    const { circuit } = breaker()
    const limiter = new Limiter(circuit, { concurrency: 1, maxRequestsPerSecond: 1_000 })
    await limiter.enter('alice')
    const waiting = limiter.enter('bob')
    open(circuit)
    limiter.leave()
    expect(await waiting).toBe(false)
    expect(await limiter.enter('carol')).toBe(false)
    circuit.beginTest('carol')
    expect(await limiter.enter('carol')).toBe(true)
  })
})

describe('the circuit', () => {
  test('is opened by three different users in a row, and not by one who fails three times', () => {
    const { circuit } = breaker()
    for (let times = 0; times < 3; times++) circuit.failed('alice', failure)
    circuit.failed('bob', failure)
    expect(circuit.isOpen).toBe(false)
    circuit.succeeded()
    circuit.failed('carol', failure)
    circuit.failed('dave', failure)
    expect(circuit.isOpen).toBe(false)
    circuit.failed('erin', failure)
    expect(circuit.isOpen).toBe(true)
  })

  test('says what the last test failed with', () => {
    const problems = new Problems(() => {})
    const circuit = new CircuitBreaker(problems, () => 1)
    const lastMessages = ['api.example.com refused the connection.', 'api.example.com answered 503.'].map(
      (message) => {
        circuit.beginTest('alice')
        circuit.failed('alice', { kind: 'SERVICE', error: new Error(message) })
        return problems.list()[0]?.message.split('The last error: ')[1]
      },
    )
    expect(lastMessages).toEqual(['api.example.com refused the connection.', 'api.example.com answered 503.'])
  })

  test('is opened by as many as there are, where those are fewer', () => {
    const { circuit } = breaker(1)
    circuit.failed('alice', failure)
    expect(circuit.isOpen).toBe(true)
  })

  test.each(['INVALID', 'STORE'] as const)(
    'is not opened by what says nothing of the service: %s',
    (kind) => {
      const { circuit } = breaker(1)
      circuit.failed('alice', { ...failure, kind })
      expect(circuit.isOpen).toBe(false)
    },
  )

  test('is tested from every 5 s to every 5 min, and not more often because others in flight fail', () => {
    const { circuit } = breaker()
    open(circuit)
    const waits: number[] = []
    for (let times = 0; times < 8; times++) {
      const before = performance.now()
      circuit.failed('late', failure)
      vi.advanceTimersByTime(circuit.nextTestFrom - before)
      expect(circuit.isTestDue).toBe(true)
      waits.push((performance.now() - before) / 1_000)
      circuit.beginTest('alice')
      expect(circuit.isTestDue).toBe(false)
      circuit.failed('alice', failure)
    }
    expect(waits).toEqual([5, 10, 20, 40, 80, 160, 300, 300])
  })

  test('waits for as long as the service asks, and for five minutes at most', () => {
    const { circuit } = breaker(1)
    const before = performance.now()
    circuit.failed('alice', { ...failure, retryAfterMs: 60_000 })
    expect(circuit.nextTestFrom - before).toBe(60_000)
    circuit.beginTest('alice')
    circuit.failed('alice', { ...failure, retryAfterMs: 3_600_000 })
    expect(circuit.nextTestFrom - before).toBe(300_000)
  })

  test('stays open after a test in which nothing was sent', () => {
    const { circuit } = breaker()
    open(circuit)
    vi.advanceTimersByTime(5_000)
    circuit.beginTest('alice')
    circuit.endTest('alice')
    expect([circuit.isOpen, circuit.isTestDue]).toEqual([true, true])
  })

  test('is one problem while the service flaps, and resolved after a minute of calm', () => {
    const { circuit, reported } = breaker()
    for (let times = 0; times < 3; times++) {
      open(circuit)
      vi.advanceTimersByTime(30_000)
      circuit.succeeded()
      circuit.review(true)
      vi.advanceTimersByTime(30_000)
    }
    expect(reported).toEqual(['SERVICE'])
    vi.advanceTimersByTime(30_000)
    circuit.review(true)
    expect(reported).toEqual(['SERVICE', 'SERVICE resolved'])
  })

  test('is resolved at once where nobody looks again', () => {
    const { circuit, reported } = breaker()
    open(circuit)
    circuit.succeeded()
    circuit.review(false)
    expect(reported).toEqual(['SERVICE', 'SERVICE resolved'])
  })

  test('reports a failure of another kind as another problem', () => {
    const { circuit, reported } = breaker(1)
    circuit.failed('alice', failure)
    circuit.beginTest('alice')
    circuit.failed('alice', { ...failure, kind: 'CREDENTIALS' })
    expect(reported).toEqual(['SERVICE', 'SERVICE resolved', 'CREDENTIALS'])
  })
})
