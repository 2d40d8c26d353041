import { createServer } from 'node:https'
import connect, { type NextHandleFunction } from 'connect'
import express from 'express'
import express4 from 'express4'
import { toNodeHandler } from 'notification-subscriber/webhooks'
import { describe, test } from 'vitest'
import { expectTypedDelivery } from './support/expect-delivery.js'
import { startServer } from './support/running-server.js'

type BodyParsers = Record<'json' | 'raw' | 'text' | 'urlencoded', (options?: object) => NextHandleFunction>

/** What is mounted for the whole app, before the route. */
function middlewareOf({ json, raw, text, urlencoded }: BodyParsers): [string, NextHandleFunction[]][] {
  const type = 'application/json'
  const extended = true
  return [
    ['no body parser', []],
    ['json', [json()]],
    ['raw, for JSON', [raw({ type })]],
    ['text, for JSON', [text({ type })]],
    ['raw, text and urlencoded, which leave JSON alone', [raw(), text(), urlencoded({ extended })]],
    ['every body parser', [json(), raw(), text(), urlencoded({ extended })]],
    ['every body parser, raw first', [raw({ type }), json(), text(), urlencoded({ extended })]],
  ]
}

describe('a route of Express 5 hands a typed notification to the handler', () => {
  test.each(middlewareOf(express))('with %s', (_name, middleware) =>
    expectTypedDelivery((receiver, tls) => {
      const app = express()
      for (const parser of middleware) app.use(parser)
      app.post('/notifications', toNodeHandler(receiver))
      return startServer(createServer(tls, app))
    }),
  )

  test('in a router, with a body parser of its own', () =>
    expectTypedDelivery((receiver, tls) => {
      const router = express.Router()
      router.post('/', express.json(), toNodeHandler(receiver))
      return startServer(createServer(tls, express().use('/notifications', router)))
    }))
})

describe('a route of Express 4 hands a typed notification to the handler', () => {
  test.each(middlewareOf(express4))('with %s', (_name, middleware) =>
    expectTypedDelivery((receiver, tls) => {
      const app = express4()
      for (const parser of middleware) app.use(parser)
      app.post('/notifications', toNodeHandler(receiver))
      return startServer(createServer(tls, app))
    }),
  )
})

describe('a path of Connect hands a typed notification to the handler', () => {
  test.each(middlewareOf(express))('with %s', (_name, middleware) =>
    expectTypedDelivery((receiver, tls) => {
      const app = connect()
      for (const parser of middleware) app.use(parser)
      app.use('/notifications', toNodeHandler(receiver))
      return startServer(createServer(tls, app))
    }),
  )
})
