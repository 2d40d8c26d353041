/** The notification service and its callbacks as an OpenAPI 3.1 document. */
import { notificationTypes } from '../../src/notification-types.js'
import { framingHeaders } from '../../src/shared/headers.js'
import { endpoints } from '../../src/shared/routes.js'
import {
  accessTokenJsonSchema,
  createdSubscriptionJsonSchema,
  deliveryJsonSchema,
  type JsonSchema,
  subscriptionIdJsonSchema,
  withoutDialect,
} from './json-schemas.js'

const publicPages = "From the service's public developer pages; the interface document does not show it."

/** @param version - of the package, which the document is a part of */
export function openApiDocument(version: string) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Notification subscription service',
      summary: 'Access tokens, subscriptions to notifications about users, and their delivery by callbacks.',
      description:
        'All requests use HTTPS over TLS. Error bodies, and statuses beyond those listed here, are not ' +
        'documented. This document describes the service; its version is that of the package it is part of.',
      version,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [
      {
        url: 'https://{notificationHost}',
        description: 'The notification service.',
        variables: { notificationHost: { default: 'notifications.example.com' } },
      },
    ],
    tags: [
      { name: 'tokens', description: 'OAuth 2.0 access tokens.' },
      { name: 'subscriptions', description: 'Subscriptions to notifications.' },
      { name: 'callbacks', description: "Notifications at the subscriber's own URL." },
    ],
    paths: {
      [endpoints.token.path]: tokenPath,
      [endpoints.create.path]: at(endpoints.create, createSubscription),
      // Update and unsubscribe have the same path.
      [endpoints.update.path]: {
        parameters: [{ $ref: '#/components/parameters/subscriptionId' }],
        ...at(endpoints.update, updateSubscription),
        ...at(endpoints.unsubscribe, unsubscribe),
      },
    },
    webhooks: { notification: { post: notificationCallback } },
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'An access token of the token endpoint.',
        },
        basic: {
          type: 'http',
          scheme: 'basic',
          description: 'User name and password, joined by a colon, in base64.',
        },
        clientCredentials: {
          type: 'http',
          scheme: 'basic',
          description:
            'Client ID and client secret, joined by a colon, in base64. Some authorization servers expect each ' +
            'to be form-encoded first (RFC 6749 section 2.3.1).',
        },
      },
      parameters: {
        subscriptionId: {
          name: 'subscriptionId',
          in: 'path',
          required: true,
          description: 'The `subscription_id` that creating returned.',
          schema: subscriptionIdJsonSchema(),
        },
      },
      responses: {
        Other: {
          description: 'Any other status. Neither it nor the format of its body is documented.',
        },
      },
      schemas: {
        AccessTokenRequest: accessTokenRequest,
        AccessToken: accessTokenJsonSchema(),
        OAuthError: oauthError,
        CreateSubscription: createSubscriptionForm,
        CreatedSubscription: createdSubscriptionJsonSchema(),
        UpdateSubscription: updateSubscriptionForm,
        Delivery: withoutDialect(deliveryJsonSchema()),
      },
    },
  }
}

function at<Description>(
  { method }: { method: string },
  description: Description,
): Record<string, Description> {
  return { [method.toLowerCase()]: description }
}

const formOf = (schema: string) => ({
  required: true,
  content: { 'application/x-www-form-urlencoded': { schema: { $ref: `#/components/schemas/${schema}` } } },
})

const json = (schema: string) => ({
  'application/json': { schema: { $ref: `#/components/schemas/${schema}` } },
})

const subscriptionSecurity = [{ bearer: [] }, { basic: [] }]

const other = { $ref: '#/components/responses/Other' }

const echoedHeaders =
  'Request headers whose names the service is configured to permit are associated with the subscription, too.'

const tokenPath = {
  servers: [
    {
      url: 'https://{authHost}',
      description: 'The authorization server of a tenant; its host is derived from the tenant name.',
      variables: { authHost: { default: 'auth.example.com' } },
    },
  ],
  parameters: [
    {
      name: 'domain',
      in: 'path',
      required: true,
      description: 'The unique tenant name of the client.',
      schema: { type: 'string', minLength: 1 },
    },
  ],
  ...at(endpoints.token, {
    operationId: 'getAccessToken',
    tags: ['tokens'],
    summary: 'Get an access token (OAuth 2.0 client credentials grant).',
    security: [{ clientCredentials: [] }],
    requestBody: formOf('AccessTokenRequest'),
    responses: {
      [endpoints.token.success]: { description: 'A new access token.', content: json('AccessToken') },
      '400': {
        description: 'The request is wrong (RFC 6749 section 5.2).',
        content: json('OAuthError'),
      },
      '401': {
        description: 'The client ID or the secret is wrong (RFC 6749 section 5.2).',
        content: json('OAuthError'),
      },
      default: other,
    },
  }),
}

const createSubscription = {
  operationId: 'createSubscription',
  tags: ['subscriptions'],
  summary: 'Subscribe to notifications about users.',
  description: `Only one subscription may exist for a user, notification type and callback URL. ${echoedHeaders}`,
  security: subscriptionSecurity,
  requestBody: formOf('CreateSubscription'),
  responses: {
    [endpoints.create.success]: {
      description: 'The subscription is active.',
      content: json('CreatedSubscription'),
    },
    '409': {
      description:
        'A subscription for some of these users and types exists at this callback URL. With recreateIfExists it ' +
        'overlaps only in part, because an identical one would have been replaced. Nothing was created or deleted.',
    },
    default: other,
  },
}

const updateSubscription = {
  operationId: 'updateSubscription',
  tags: ['subscriptions'],
  summary: 'Change parameters of a subscription.',
  description: `Later callbacks carry the new values; parameters that are not named keep theirs. ${echoedHeaders} ${publicPages}`,
  security: subscriptionSecurity,
  requestBody: formOf('UpdateSubscription'),
  responses: {
    '2XX': { description: 'Changed. Which status of this class it is, is not documented.' },
    '404': {
      description:
        'No active subscription has this identifier. Documented for unsubscribing, and to be expected here.',
    },
    default: other,
  },
}

const unsubscribe = {
  operationId: 'unsubscribe',
  tags: ['subscriptions'],
  summary: 'End a subscription.',
  description: publicPages,
  security: subscriptionSecurity,
  responses: {
    [endpoints.unsubscribe.success]: { description: 'The subscription has ended.' },
    '404': { description: 'No active subscription has this identifier.' },
    default: other,
  },
}

const notificationCallback = {
  operationId: 'receiveNotification',
  tags: ['callbacks'],
  summary: 'The service delivers a notification to the callback URL of a subscription.',
  description:
    'The request carries every parameter and header associated with the subscription as a header of the same ' +
    'name. It has no signature: a secret parameter is what proves its sender.',
  security: [],
  requestBody: { required: true, content: json('Delivery') },
  responses: {
    '2XX': { description: 'Delivered. The answer is not used otherwise.' },
    default: {
      description:
        'Failed. The notification is not sent again, and three failures in a row end the subscription: also ' +
        'answer 2XX to a body that does not match the schema.',
    },
  },
}

const accessTokenRequest: JsonSchema = {
  type: 'object',
  required: ['grant_type'],
  properties: {
    grant_type: { type: 'string', const: 'client_credentials' },
    scope: {
      type: 'string',
      description: `Scope to ask for. ${publicPages}`,
    },
  },
  propertyNames: { minLength: 1 },
  additionalProperties: {
    type: 'string',
    description: 'Unknown parameters are ignored; none may be given twice (RFC 6749 section 3.2).',
  },
}

const oauthError: JsonSchema = {
  type: 'object',
  description: 'RFC 6749 section 5.2.',
  required: ['error'],
  properties: {
    error: { type: 'string', description: 'An error code, e.g. invalid_client.' },
    error_description: { type: 'string', description: 'A text for people.' },
  },
}

/** What can be the value of a header (RFC 9110 section 5.5). */
const parameterValue = { type: 'string', pattern: '^[\\t -~\\u0080-\\u00ff]*$' }

/** What can be the name of a header (RFC 9110 section 5.6.2), but none that belongs to the callback request itself. */
const parameterName = {
  pattern: "^[!#$%&'*+\\-.^_`|~0-9A-Za-z]+$",
  not: { pattern: `^(${framingHeaders.map(inAnyCase).join('|')})$` },
}

/** A pattern of JSON Schema has no flag for "in any case". */
function inAnyCase(name: string): string {
  return name.replaceAll(/[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`)
}

const anyType = `(${notificationTypes.join('|')})`

/** Without a comma, and without spaces at its ends. */
const anyUsername = '[^,\\s]([^,]*[^,\\s])?'

const createSubscriptionForm: JsonSchema = {
  type: 'object',
  required: ['notification_type', 'username', 'callback_url'],
  properties: {
    notification_type: {
      type: 'string',
      description: `One or more of ${notificationTypes.join(', ')}, as one comma-separated list.`,
      pattern: `^${anyType}(,${anyType})*$`,
      examples: [notificationTypes.slice(0, 2).join(',')],
    },
    username: {
      type: 'string',
      description: 'One or more usernames, as one comma-separated list.',
      pattern: `^${anyUsername}(,${anyUsername})*$`,
      examples: ['alice,bob'],
    },
    callback_url: {
      type: 'string',
      format: 'uri',
      pattern: '^https://',
      description: 'The URL that the service invokes, https.',
      examples: ['https://app.example.com/notifications'],
    },
    recreateIfExists: {
      type: 'boolean',
      default: false,
      description:
        'Replaces a subscription that has exactly the same notification types, users and callback URL.',
    },
  },
  propertyNames: parameterName,
  additionalProperties: {
    ...parameterValue,
    description: 'A parameter of your choice, which comes back as a header on every callback.',
  },
}

const updateSubscriptionForm: JsonSchema = {
  type: 'object',
  description:
    'The parameters to change, at least one. What was given at the creation besides them cannot change.',
  minProperties: 1,
  propertyNames: {
    ...parameterName,
    not: { anyOf: [parameterName.not, { enum: Object.keys(createSubscriptionForm.properties ?? {}) }] },
  },
  additionalProperties: {
    ...parameterValue,
    description: 'The new value of the parameter, or the value of a new one.',
  },
}
