/** NestJS 11 and 12, and an app of each. */
import 'reflect-metadata'
import { Controller, Module, type ModuleMetadata, Post, Req, Res } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import type { KeyAndCertificate } from 'notification-subscriber/emulator'
import * as nest12 from '../nest12/nest.js'
import type { RunningServer } from './running-server.js'

const nest11 = { Controller, Module, NestFactory, Post, Req, Res }

export type Nest = typeof nest11

/** What this needs of both is the same, except the types of an app. */
export const nestVersions = { 11: nest11, 12: nest12 as object as Nest }

/** Starts an app with one module. @param prepare - called before the app listens */
export async function nestApp(
  nest: Nest,
  httpsOptions: KeyAndCertificate,
  metadata: ModuleMetadata,
  prepare: (app: NestExpressApplication) => unknown = () => {},
): Promise<RunningServer> {
  class AppModule {}
  nest.Module(metadata)(AppModule)
  const options = { rawBody: true, httpsOptions, logger: false as const }
  const app = await nest.NestFactory.create<NestExpressApplication>(AppModule, options)
  await prepare(app)
  await app.listen(0, '127.0.0.1')
  return { origin: await app.getUrl(), close: () => app.close() }
}
