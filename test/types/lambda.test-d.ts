import type {
  ALBHandler,
  APIGatewayProxyHandler,
  APIGatewayProxyHandlerV2,
  LambdaFunctionURLHandler,
} from 'aws-lambda'
import { DeliveryReceiver, toLambdaHandler } from 'notification-subscriber/webhooks'
import { expectTypeOf, test } from 'vitest'

test('toLambdaHandler is the handler of each service', () => {
  const handler = toLambdaHandler(new DeliveryReceiver({ allowUnauthenticated: true }))
  expectTypeOf(handler).toExtend<APIGatewayProxyHandler>()
  expectTypeOf(handler).toExtend<APIGatewayProxyHandlerV2>()
  expectTypeOf(handler).toExtend<ALBHandler>()
  expectTypeOf(handler).toExtend<LambdaFunctionURLHandler>()
})
