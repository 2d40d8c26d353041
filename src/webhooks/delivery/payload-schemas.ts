/** The one payload that is documented (docs/service.md, Resources), and the fields that schemas share. */
import * as z from 'zod'

/** Any text. */
export const text = z.string()

/** Any integer. Not `z.int()`, which refuses integers beyond 2^53: the service is free to send those. */
export const integer = z.number().refine(Number.isInteger, 'must be an integer').meta({ type: 'integer' })

/** The value of `notification.type` whose payload is documented. */
export const documentedType = 'lowEnergyAgentOpened'

const payloadSchema = z.looseObject({
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

/**
 * The payload of a `lowEnergyAgentOpened` notification (docs/service.md, Resources). `bTime`, `nTime` and `idx` are
 * integers of any sign; no unit of theirs is documented. Fields that are not named here are kept, but have no type:
 * with an index signature a misspelt name would compile.
 */
export const lowEnergyAgentOpenedPayloadSchema = payloadSchema as z.ZodObject as z.ZodObject<
  typeof payloadSchema.shape,
  z.core.$strip
>
