/** NestJS 11 and 12, and an app of each. */
import 'reflect-metadata'
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import type { KeyAndCertificate } from 'notification-subscriber/emulator'
import * as nest12 from '../nest12/nest.js'
import type { RunningServer } from './subscribed.js'

const nest11 = { Module, NestFactory }

/** What this needs of both is the same, except the types of an app. */
export const nestVersions = { 11: nest11, 12: nest12 as object as typeof nest11 }

/** Starts an app with an empty module. @param prepare - called before the app listens */
export async function nestApp(
  nest: typeof nest11,
  httpsOptions: KeyAndCertificate,
  prepare: (app: NestExpressApplication) => unknown,
): Promise<RunningServer> {
  class AppModule {}
  nest.Module({})(AppModule)
  const options = { httpsOptions, logger: false as const }
  const app = await nest.NestFactory.create<NestExpressApplication>(AppModule, options)
  await prepare(app)
  await app.listen(0, '127.0.0.1')
  return { origin: await app.getUrl(), [Symbol.asyncDispose]: () => app.close() }
}
