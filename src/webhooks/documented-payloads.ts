/** The documented payloads as users import them: a type and a schema each. */
import type * as z from 'zod'
import { type DocumentedPayload, type DocumentedShape, documentedPayloads } from '../notification-types.js'

/** The payload of a `lowEnergyAgentOpened` notification (docs/service.md, Resources). */
export type LowEnergyAgentOpenedPayload = DocumentedPayload<'lowEnergyAgentOpened'>

/**
 * The payload of a `lowEnergyAgentOpened` notification (docs/service.md, Resources). `bTime`, `nTime` and `idx` are
 * integers of any sign, whose unit is not documented. Fields that are not named here are kept, but have no type.
 */
export const lowEnergyAgentOpenedPayloadSchema = documentedPayloads.lowEnergyAgentOpened
  .schema as z.ZodObject as z.ZodObject<DocumentedShape<'lowEnergyAgentOpened'>, z.core.$strip>
