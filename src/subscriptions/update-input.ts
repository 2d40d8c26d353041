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
  /** Sent as fields of the form; come back as headers of every callback. Default: none. */
  readonly parameters?: AssociatedValues | undefined
  /**
   * Sent as request headers; come back as headers of every callback, if the service is configured to permit their names
   * (docs/service.md, Endpoints). Default: none.
   */
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
      'at least one parameter or header must be given',
    ),
)

/** Validates a subscription id: the integer that creating returned (docs/service.md, Resources). */
export const subscriptionIdSchema = z.lazy(() =>
  z.int('the subscription id must be the integer that createSubscription returned'),
)
