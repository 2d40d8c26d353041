import { describe, expect, test } from 'vitest'
import { didYouMean, nearestName } from '../../src/shared/given.js'

describe('the nearest name', () => {
  const names = ['lowEnergyAgentOpened', 'cxScoreUpdated', 'port']

  test.each([
    ['lowEnergyAgentOpend', 'lowEnergyAgentOpened'],
    ['lowenergyagent', 'lowEnergyAgentOpened'],
    ['CXSCOREUPDATED', 'cxScoreUpdated'],
    ['prot', 'port'],
    ['xxxx', undefined],
    ['', undefined],
    ['port'.repeat(100_000), undefined],
  ])('to %s', (text, name) => {
    expect(nearestName(text, names)).toBe(name)
  })

  test('is advice behind another name', () => {
    expect(didYouMean('prot', names, (name) => `--${name}`)).toBe(' (did you mean --port?)')
    expect(didYouMean('other', names, (name) => name)).toBe('')
  })
})
