import { expect, test } from 'vitest'
import { describePublicApi } from './public-api.js'

test('the public API is the reviewed one; npm run api:update accepts a change', async () => {
  await expect(describePublicApi()).toMatchFileSnapshot('public-api.md')
}, 120_000)
