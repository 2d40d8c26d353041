/** Deliveries to start from: each call makes new objects, so that a test may change them. */

export const lowEnergyPayload = () => ({
  callId: '9a1f0a52-1f6e-4a41-8b8b-9f1d2d3c4b5a',
  username: 'alice',
  bTime: 21648,
  nTime: 35912,
  idx: 0,
})

export const deliveryOf = (type: string, payload: unknown) => ({
  subscriptionId: 4711,
  notification: {
    id: '6f1c3c1e-5a7c-4c3a-9f61-0b1f0f5b7a11',
    time: 1717000000000,
    ver: '1.0',
    type,
    payload,
  },
})

export const lowEnergyDelivery = () => deliveryOf('lowEnergyAgentOpened', lowEnergyPayload())

/** The delivery with the value at `path` replaced, or removed where `value` is undefined. */
export function changed(path: readonly string[], value: unknown): Record<string, unknown> {
  const delivery = lowEnergyDelivery() as Record<string, unknown>
  let parent = delivery
  for (const key of path.slice(0, -1)) parent = parent[key] as Record<string, unknown>
  const last = path.at(-1) ?? ''
  if (value === undefined) delete parent[last]
  else parent[last] = value
  return delivery
}
