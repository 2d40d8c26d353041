/** What a caller gives to change the parameters of a subscription (docs/service.md, Rules). */
import * as z from 'zod'
import {
  type AssociatedValues,
  headersSchema,
  parametersSchema,
  refuseSharedNames,
} from './associated-values.js'

/**
 * The pairs to change, at least one; the others stay as they are. Later callbacks carry the new values
 * (docs/service.md, Rules).
 */
export interface UpdateSubscriptionParametersInput {
  /** Sent as fields of the form. */
  readonly parameters?: AssociatedValues | undefined
  /** Sent as request headers: the service must be configured to permit their names. */
  readonly headers?: AssociatedValues | undefined
}

/** Validates the input of `updateSubscriptionParameters` (docs/service.md, Endpoints). */
export const updateSubscriptionParametersInputSchema: z.ZodType<
  UpdateSubscriptionParametersInput,
  UpdateSubscriptionParametersInput
> = z.lazy(() =>
  z
    .strictObject({
      parameters: parametersSchema.unwrap().optional(),
      headers: headersSchema.unwrap().optional(),
    })
    .check(refuseSharedNames)
    .refine(
      ({ parameters, headers }) => Object.keys({ ...parameters, ...headers }).length > 0,
      'must change at least one parameter or header',
    ),
)

/** Validates a subscription id: the integer that creating returned (docs/service.md, Resources). */
export const subscriptionIdSchema = z.lazy(() =>
  z.int('must be the integer that createSubscription returned'),
)
