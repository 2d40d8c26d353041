/** What the emulator sends. */
import type { EmulatedNotification } from 'notification-subscriber/emulator'

/** Not ASCII only: a server that decodes bodies as something else than UTF-8 would be found out. */
export const lowEnergy = {
  type: 'lowEnergyAgentOpened',
  category: 'behavioral',
  username: 'alice',
  id: '5f0c9a56-9d0c-4c55-8a4e-0f3d3a1f9b11',
  time: 1_700_000_000_000,
  ver: '1.0',
  payload: { callId: 'Anruf № 1 – ☎', username: 'alice', bTime: 21648, nTime: 35912, idx: 0 },
} satisfies EmulatedNotification

export const brokenPayload = {
  ...lowEnergy,
  payload: { callId: 1, idx: 'first' },
} satisfies EmulatedNotification

export const unknownType = {
  ...lowEnergy,
  type: 'somethingNobodyDocumented',
  payload: { score: 4.2 },
} satisfies EmulatedNotification
