/** The payloads that the interface document describes (section 2.3), by `notification.type`. */
import * as z from 'zod'

/** Any text. */
export const text = z.string()

/** Any integer. Not `z.int()`: that refuses those beyond 2^53, which the interface document does not. */
export const integer = z.number().refine(Number.isInteger, 'expected an integer').meta({ type: 'integer' })

/**
 * The payload of a `lowEnergyAgentOpened` notification (interface.md section 2.3).
 * `bTime`, `nTime` and `idx` are integers of any sign; no unit of theirs is documented.
 */
export const lowEnergyAgentOpenedPayloadSchema = z.looseObject({
  /** The call. */
  callId: text,
  /** The user (agent) that the notification is about. */
  username: text,
  /** An integer of any sign, in no documented unit. */
  bTime: integer,
  /** An integer of any sign, in no documented unit. */
  nTime: integer,
  /** An integer of any sign. */
  idx: integer,
})

/** The payload schemas that the interface document gives, by `notification.type`. */
export const documentedPayloadSchemas = { lowEnergyAgentOpened: lowEnergyAgentOpenedPayloadSchema } as const

/** The value of `notification.type` whose payload is documented. */
export const documentedType = 'lowEnergyAgentOpened' satisfies keyof typeof documentedPayloadSchemas
