/** Tests the capabilities that begin the ids of stored events. */
import { expect, test } from 'vitest'
import { deriveCapability } from '../../src/conversations/events.ts'

test('each turn has its own capability of 22 letters and digits, which is the same each time it is derived', () => {
  const turns = Array.from({ length: 5_000 }, (_, index) => `turn_${index}`)
  const capabilities = turns.map((turn) => deriveCapability('key', turn))
  expect(capabilities.filter((text) => !/^[0-9A-Za-z]{22}$/.test(text))).toEqual([])
  expect(new Set(capabilities).size).toBe(turns.length)
  expect(turns.map((turn) => deriveCapability('key', turn))).toEqual(capabilities)
})
