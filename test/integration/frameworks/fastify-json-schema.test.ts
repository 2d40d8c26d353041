import Fastify, { type FastifyInstance } from 'fastify'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { deliveryOf, lowEnergyDelivery } from '../../webhooks/deliveries.js'
import { runBlock } from './support/page-blocks.js'

let app: FastifyInstance
const log = vi.spyOn(console, 'log').mockImplementation(() => {})
const error = vi.spyOn(console, 'error').mockImplementation(() => {})

beforeEach(async () => {
  log.mockClear()
  error.mockClear()
  app = Fastify()
  await runBlock('JSON Schema in Fastify', { app, secrets: { token: 'right' } })
})
afterEach(() => app.close())

async function statusOf(body: unknown, headers: Record<string, string> = { token: 'right' }) {
  const payload = typeof body === 'string' ? body : JSON.stringify(body)
  const url = '/notifications'
  const { statusCode } = await app.inject({
    method: 'POST',
    url,
    headers: { 'content-type': 'application/json', ...headers },
    payload,
  })
  return statusCode
}

describe('the Fastify route that validates with delivery.schema.json', () => {
  test('handles a delivery, also of a type that it does not know', async () => {
    expect(await statusOf(lowEnergyDelivery())).toBe(204)
    expect(await statusOf(deliveryOf('new', { anything: 1 }))).toBe(204)
    expect(log.mock.calls).toEqual([['lowEnergyAgentOpened'], ['new']])
    expect(error).not.toHaveBeenCalled()
  })

  test.each([
    ['a payload of another shape', deliveryOf('lowEnergyAgentOpened', { callId: 7 })],
    ['a number written as a text', { ...lowEnergyDelivery(), subscriptionId: '4711' }],
    ['malformed JSON', '{"subscriptionId":'],
  ])('reports %s and answers 204, so that it does not end the subscription', async (_name, body) => {
    expect(await statusOf(body)).toBe(204)
    expect(error).toHaveBeenCalledOnce()
    expect(log).not.toHaveBeenCalled()
  })

  test.each([
    ['without the token', {}],
    ['with a wrong token', { token: 'wrong' }],
    ['with a longer token', { token: 'right!' }],
  ])('refuses a callback %s with 401', async (_name, headers) => {
    expect(await statusOf(lowEnergyDelivery(), headers)).toBe(401)
    expect(log).not.toHaveBeenCalled()
  })
})
