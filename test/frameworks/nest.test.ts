import 'reflect-metadata'
import {
  Controller,
  type MiddlewareConsumer,
  Module,
  type NestApplicationOptions,
  Post,
  type RawBodyRequest,
  Req,
  RequestMethod,
  Res,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import type { Request, Response } from 'express'
import { type DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { describe, test } from 'vitest'
import { expectTypedDelivery } from './support/expect-delivery.js'

const bodyParsers: [name: string, options: NestApplicationOptions][] = [
  ['its body parser', {}],
  ['its body parser and rawBody', { rawBody: true }],
  ['bodyParser: false', { bodyParser: false }],
]

describe.each(bodyParsers)('NestJS 12 on Express, with %s', (_name, options) => {
  test('a middleware hands a typed notification to the handler', () =>
    expectTypedDelivery((receiver, tls) =>
      start(middlewareModule(receiver), { ...options, httpsOptions: tls }),
    ))

  test('a controller that takes request and response does', () =>
    expectTypedDelivery((receiver, tls) =>
      start(controllerModule(nodeHandlerController(receiver)), { ...options, httpsOptions: tls }),
    ))
})

describe('NestJS 12 on Express, with rawBody', () => {
  test('a controller that takes the raw body hands a typed notification to the handler', () =>
    expectTypedDelivery((receiver, tls) =>
      start(controllerModule(rawBodyController(receiver)), { rawBody: true, httpsOptions: tls }),
    ))
})

function middlewareModule(receiver: DeliveryReceiver) {
  class NotificationsModule {
    configure(consumer: MiddlewareConsumer) {
      consumer.apply(toNodeHandler(receiver)).forRoutes({ path: 'notifications', method: RequestMethod.POST })
    }
  }
  Module({})(NotificationsModule)
  return NotificationsModule
}

function nodeHandlerController(receiver: DeliveryReceiver) {
  const handleCallback = toNodeHandler(receiver)
  return class NotificationsController {
    receive(request: Request, response: Response) {
      handleCallback(request, response)
    }
  }
}

function rawBodyController(receiver: DeliveryReceiver) {
  return class NotificationsController {
    async receive(request: RawBodyRequest<Request>, response: Response) {
      const { method, headers, rawBody } = request
      const answer = await receiver.handle({ method, headers, body: rawBody })
      response.status(answer.status).set(answer.headers).end()
    }
  }
}

type NotificationsController = new () => { receive(request: Request, response: Response): unknown }

/** Decorators are called as the functions they are: nothing that runs the tests has to compile them. */
function controllerModule(controller: NotificationsController) {
  const { prototype } = controller
  const method = Object.getOwnPropertyDescriptor(prototype, 'receive') ?? {}
  Post()(prototype, 'receive', method)
  Req()(prototype, 'receive', 0)
  Res()(prototype, 'receive', 1)
  Controller('notifications')(controller)
  class NotificationsModule {}
  Module({ controllers: [controller] })(NotificationsModule)
  return NotificationsModule
}

async function start(module: new () => object, options: NestApplicationOptions) {
  const app = await NestFactory.create<NestExpressApplication>(module, { ...options, logger: false })
  await app.listen(0, '127.0.0.1')
  return { origin: await app.getUrl(), close: () => app.close() }
}
