/// <reference path="./lmdb.d.ts" />
/**
 * What a reader of a code block has already: a client, a server, a request. A block gets nothing from here but
 * the names that `context` lists for it, so that a block which does not compile for its reader does not compile in
 * the tests. Types only: nothing of this is ever run.
 */
import type { KeyObject } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Server as HapiServer } from '@hapi/hapi'
import type { NestExpressApplication } from '@nestjs/platform-express'
import type { Express } from 'express'
import type { FastifyInstance } from 'fastify'
import type { Hono } from 'hono'
import type { Redis } from 'ioredis'
import type Koa from 'koa'
import type { Auth, CreateSubscriptionInput, NotificationClient } from 'notification-subscriber'
import type { Emulator } from 'notification-subscriber/emulator'
import type { SubscriptionKeeper, SubscriptionKeeperOptions } from 'notification-subscriber/keeper'
import type { DeliverySpool } from 'notification-subscriber/spool'
import type { DeliveryReceiver, Notification, NotificationHandler } from 'notification-subscriber/webhooks'
import type { Logger as WinstonLogger } from 'winston'

export { createServer } from 'node:http'
export { Redis } from 'ioredis'
export type { Notification } from 'notification-subscriber/webhooks'

// Of the client.
export declare const client: NotificationClient
export declare const clientId: string
export declare const clientSecret: string
export declare const privateKey: KeyObject
export declare const subscriptionId: number
export declare const wanted: CreateSubscriptionInput
export declare const inputs: readonly CreateSubscriptionInput[]
export declare const auth: Auth

// Of the receiver.
export declare const receiver: DeliveryReceiver
export declare const body: string
export declare const current: string
export declare const token: string
export declare const CALLBACK_URL: string
export declare const secrets: { token: string }
export declare const next: string
export declare const vault: { read(): Promise<Map<string, { token: string[] }>> }
export declare const tenants: Map<string, { token: string[] }>
export declare const onLowEnergy: NotificationHandler<'lowEnergyAgentOpened'>
export declare const queue: { add(item: object): Promise<void> }

// Of the keeper.
export declare const keeper: SubscriptionKeeper
export declare const keepers: ReadonlyMap<string, SubscriptionKeeper>
export declare const keeperOptions: SubscriptionKeeperOptions
export declare const redisClient: Redis
export declare const winstonLogger: WinstonLogger
export declare const crm: { agents(): Promise<string[]> }

// Of the spool.
export declare const spool: DeliverySpool
export declare const notification: Notification
export declare const work: (notification: Notification) => Promise<void>

// Of servers and platforms.
export declare const server: Server
export declare const parsedRequest: IncomingMessage & { body: unknown }
export declare const response: ServerResponse
export declare const webRequest: Request
export declare const express: Express
export declare const fastify: FastifyInstance
export declare const nest: NestExpressApplication
export declare const hono: Hono
export declare const koa: Koa
export declare const hapi: HapiServer
export declare const Bun: {
  serve(options: { port: number; routes: Record<string, (request: Request) => Promise<Response>> }): object
}
export declare const waitUntil: (promise: Promise<unknown>) => void
export type Env = Record<string, unknown>
export interface ExecutionContext {
  waitUntil(promise: Promise<unknown>): void
}

// Of tests.
export declare const emulator: Emulator

/**
 * By the name of a docstring's block: what it gets from here, `as` the name that it uses. A block that is not here gets
 * nothing. A page says so itself, in a comment above the block.
 */
export const context: Readonly<Record<string, readonly string[]>> = {
  'src/auth/credentials.ts: ClientAuthentication': ['clientId', 'privateKey'],
  'src/client/notification-client.ts: NotificationClient': ['clientId', 'clientSecret'],
  'src/client/notification-client.ts: tryCreateSubscription': ['client', 'wanted as input'],
  'src/client/notification-client.ts: updateSubscriptionParameters': [
    'client',
    'subscriptionId',
    'next as newToken',
  ],
  'src/emulator/emulator.ts: injectFault': ['emulator', 'subscriptionId'],
  'src/emulator/emulator.ts: on': ['emulator'],
  'src/errors.ts: NotificationError': ['client', 'wanted as input'],
  'src/keeper/subscription-keeper.ts: SubscriptionKeeper': [
    'server',
    'client',
    'crm',
    'current as token',
    'receiver',
    'redisClient as redis',
  ],
  'src/spool/delivery-spool.ts: DeliverySpool': ['current as token', 'work'],
  'src/spool/delivery-spool.ts: deadLetters': ['spool'],
  'src/stores/redis.ts: redisStore': ['Redis'],
  'src/stores/once.ts: once': ['redisClient', 'work'],
  'src/webhooks/parse.ts: createDeliveryParser': ['body'],
  'src/webhooks/parse.ts: parseDelivery': ['webRequest as request'],
  'src/webhooks/receiver.ts: DeliveryReceiver': [
    'createServer',
    'current as currentToken',
    'next as previousToken',
    'queue',
  ],
  'src/webhooks/adapters/lambda.ts: toLambdaHandler': ['receiver'],
  'src/webhooks/receiver.ts: close': ['receiver', 'server'],
  'src/webhooks/receiver.ts: drain': ['receiver'],
  'src/webhooks/receiver.ts: handle': ['receiver', 'parsedRequest as request', 'response'],
  'src/webhooks/adapters/fastify.ts: toFastifyPlugin': ['receiver', 'fastify'],
  'src/webhooks/handlers.ts: header': ['receiver'],
  'src/webhooks/adapters/node.ts: toNodeHandler': ['createServer', 'receiver', 'express as app'],
  'src/webhooks/options.ts: payloads': ['current as currentToken'],
  'src/webhooks/options.ts: secrets': ['current as currentToken', 'next as previousToken', 'tenants'],
  'src/webhooks/sample.ts: sampleDelivery': ['onLowEnergy'],
  'src/webhooks/secrets.ts: verifySecrets': ['current as currentToken'],
  'src/webhooks/adapters/web.ts: toWebHandler': ['receiver', 'hono as app'],
  'src/webhooks/adapters/web.ts: waitUntil': ['receiver', 'waitUntil', 'type Env', 'type ExecutionContext'],
}
