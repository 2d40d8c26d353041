/** The calls about subscriptions: input, request, answer, result (docs/service.md, Endpoints and States). */
import * as z from 'zod'
import { ApiError, type SubscriptionConflictError, type SubscriptionRequestSummary } from '../errors.js'
import { type Address, addressBelow, type UnauthorizedRequest } from '../http/exchange.js'
import type { Call } from '../http/send.js'
import { loopbackCallbackProblem, withoutQuery } from '../shared/addresses.js'
import { gatewayKeys } from '../shared/redact.js'
import { endpoints, idPlace, type RouteName, type Routes, resolvedRoute } from '../shared/routes.js'
import { isBusy, isConflict, isNotFound, isSuccess, provesCreate } from '../shared/statuses.js'
import { numericId } from '../shared/validation.js'
import {
  apiError,
  conflictError,
  falseSuccess,
  noUsableId,
  outcomeUnknown,
  refusedChange,
  unsendable,
} from './answer-errors.js'
import {
  type AssociatedValues,
  type CreateSubscriptionInput,
  createSubscriptionInputSchema,
  subscriptionIdSchema,
  type UpdateSubscriptionParametersInput,
  updateSubscriptionParametersInputSchema,
  validInput,
} from './schemas.js'

/** A subscription that now exists (docs/service.md, Resources). */
export interface CreatedSubscription {
  /** The service's identifier; needed to unsubscribe and to update, so keep it. */
  readonly subscriptionId: number
}

/** The result of `tryCreateSubscription`: comparing `created` narrows it. */
export type CreateSubscriptionResult =
  | (CreatedSubscription & {
      /** A subscription now exists. */
      readonly created: true
    })
  | {
      /** Nothing was created or deleted. */
      readonly created: false
      /** The error that `createSubscription` would have thrown. */
      readonly conflict: SubscriptionConflictError
    }

/** The answer to a successful create (docs/service.md, Endpoints). Fields beyond this one are dropped. */
export const createSubscriptionResponseSchema = z.object({
  /** Identifier of the new subscription: an integer, also if it is written as text. */
  subscription_id: z.preprocess(numericId, z.int()),
})

/** Compiled at the first create, so that an import stays fast. Uncompiled, both take a quarter of a create's own time. */
let inputSchema: typeof createSubscriptionInputSchema | undefined
let answerSchema: typeof createSubscriptionResponseSchema | undefined

export class SubscriptionEndpoints {
  readonly #createAddress: Address
  readonly #gatewayKeys: readonly string[]
  /** Operations whose route has answered 2xx: only then a 404 proves that the subscription has ended. */
  readonly #confirmed = new Set<RouteName>()

  /** @param headers - sent with every request, for a gateway in front of the service */
  constructor(
    private readonly baseUrl: URL,
    private readonly headers: AssociatedValues | undefined,
    private readonly routes: Routes = {},
  ) {
    this.#createAddress = addressBelow(baseUrl, endpoints.create.path)
    this.#gatewayKeys = gatewayKeys(headers)
  }

  async create(call: Call, input: CreateSubscriptionInput): Promise<CreateSubscriptionResult> {
    inputSchema ??= z.compile(createSubscriptionInputSchema)
    const valid = validInput(call.method, inputSchema, input)
    const { notificationTypes, parameters = {}, recreateIfExists, usernames } = valid
    // As text at once, because the caller may change a URL object.
    const callbackUrl = String(valid.callbackUrl)
    const problem = loopbackCallbackProblem(callbackUrl, this.baseUrl.href)
    if (problem !== undefined) throw unsendable(['callbackUrl'], problem)
    const form = new URLSearchParams()
    form.append('notification_type', notificationTypes.join(','))
    form.append('username', usernames.join(','))
    form.append('callback_url', callbackUrl)
    if (recreateIfExists !== undefined) form.append('recreateIfExists', String(recreateIfExists))
    for (const [name, value] of Object.entries(parameters)) form.append(name, value)
    const [, query = ''] = callbackUrl.split('?', 2)
    const request: UnauthorizedRequest = {
      method: 'POST',
      address: this.#createAddress,
      body: form.toString(),
      ...this.#headersAndSecrets(valid, query),
      // Without `recreateIfExists`, a repeated create is answered 409 if the first answer was lost.
      isRepeatable: recreateIfExists === true,
      action: 'create the subscription',
    }
    // For errors: without parameters, headers and the callback URL's query, which may be secrets.
    const summary = (): SubscriptionRequestSummary => ({
      notificationTypes,
      usernames,
      callbackUrl: withoutQuery(callbackUrl),
      recreateIfExists: recreateIfExists === true,
    })
    try {
      const answer = await call.send(request, apiError)
      const isOfService = answer.intermediary === undefined
      if (isConflict(answer.status) && isOfService) {
        const conflict = conflictError(answer, summary())
        // After a lost attempt, the conflict may be with what that attempt created.
        if (call.lostAttempts > 0 && recreateIfExists !== true) throw conflict
        return { created: false, conflict }
      }
      if (!isSuccess(answer.status) || !isOfService) throw apiError(answer, call.busyAttempts > 0)
      const failure = provesCreate(answer.status) ? undefined : falseSuccess(answer)
      if (failure !== undefined) throw failure
      answerSchema ??= z.compile(createSubscriptionResponseSchema)
      const { subscription_id } = answer.json(answerSchema, (issues) => noUsableId(answer, issues))
      return { created: true, subscriptionId: subscription_id }
    } catch (error) {
      if (call.lostAttempts === 0) throw error
      // The error for a busy service already says that the subscription may exist.
      const isOnlyBusy = call.lostAttempts === call.busyAttempts
      throw isOnlyBusy && error instanceof ApiError && isBusy(error.status)
        ? error
        : outcomeUnknown(error, summary)
    }
  }

  async update(call: Call, subscriptionId: number, input: UpdateSubscriptionParametersInput): Promise<void> {
    const id = validInput(call.method, subscriptionIdSchema, subscriptionId)
    const valid = validInput(call.method, updateSubscriptionParametersInputSchema, input)
    const { parameters = {}, headers } = valid
    const idField = this.routes.update?.idField
    if (idField !== undefined && Object.hasOwn(parameters, idField)) {
      throw unsendable(['parameters', idField], 'is the field of the id (`routes.update.idField`)')
    }
    await this.#change(call, 'update', id, { parameters, headers })
  }

  async unsubscribe(call: Call, subscriptionId: number): Promise<void> {
    const id = validInput(call.method, subscriptionIdSchema, subscriptionId)
    await this.#change(call, 'unsubscribe', id, {})
  }

  async #change(
    call: Call,
    operation: RouteName,
    subscriptionId: number,
    values: UpdateSubscriptionParametersInput,
  ): Promise<void> {
    const { idField, method, path } = resolvedRoute(operation, this.routes[operation])
    const id = String(subscriptionId)
    const fields = { ...(idField !== undefined && { [idField]: id }), ...values.parameters }
    const hasForm = idField !== undefined || values.parameters !== undefined
    const request = {
      method,
      address: addressBelow(this.baseUrl, path.replace(idPlace, id)),
      body: hasForm ? new URLSearchParams(fields).toString() : undefined,
      ...this.#headersAndSecrets(values),
      isRepeatable: true,
      action: operation === 'update' ? 'update the subscription' : operation,
    }
    const answer = await call.send(request, apiError)
    const isLost = call.lostAttempts > 0
    // Read after the answer: another call may have confirmed the route meanwhile.
    const provesEnded = this.#confirmed.has(operation)
    const isOfService = answer.intermediary === undefined
    const hasEnded = isNotFound(answer.status) && isOfService && provesEnded
    // An earlier attempt of this call, whose answer was lost, has ended the subscription.
    if (operation === 'unsubscribe' && hasEnded && isLost) return
    const failure =
      isSuccess(answer.status) && isOfService
        ? falseSuccess(answer)
        : refusedChange(answer, { operation, subscriptionId, provesEnded, isLost })
    if (failure !== undefined) throw failure
    this.#confirmed.add(operation)
  }

  /** Each value of a header or parameter may be a secret. */
  #headersAndSecrets(
    { headers, parameters }: UpdateSubscriptionParametersInput,
    ...further: string[]
  ): Pick<UnauthorizedRequest, 'headers' | 'secrets'> {
    const own = this.headers
    const taken = Object.keys(own ?? {}).map((name) => name.toLowerCase())
    const twice = Object.keys(headers ?? {}).find((name) => taken.includes(name.toLowerCase()))
    if (twice !== undefined) {
      throw unsendable(['headers', twice], "is a header of the client's option `headers`")
    }
    const given = [headers, parameters].flatMap((values) => Object.values(values ?? {}))
    return {
      headers: own || headers ? { ...own, ...headers } : undefined,
      secrets: [...this.#gatewayKeys, ...given, ...further],
    }
  }
}
