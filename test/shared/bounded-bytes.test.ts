import { expect, test } from 'vitest'
import { BoundedBytes } from '../../src/shared/bounded-bytes.js'

test('pieces are joined up to the limit, and the beginning of a piece that does not fit is kept', () => {
  const collected = new BoundedBytes(5)
  expect(collected.add(Uint8Array.of(1, 2))).toBe(true)
  expect(collected.add(Uint8Array.of(3))).toBe(true)
  expect(collected.add(Uint8Array.of(4, 5, 6))).toBe(false)
  expect(collected.add(Uint8Array.of(6))).toBe(false)
  expect([...collected.bytes]).toEqual([1, 2, 3, 4, 5])
})

test('a million single bytes, which would take minutes if each copied those before', () => {
  const collected = new BoundedBytes(2 ** 20)
  for (let count = 0; count < 2 ** 20; count++) collected.add(Uint8Array.of(7))
  expect(collected.bytes.byteLength).toBe(2 ** 20)
})
