/** Callbacks in a NestJS app on Express. Run it with `npx tsx examples/receive-nest.ts`. */
import 'reflect-metadata'
import { Injectable, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { DeliveryReceiver, type Notification, toNodeHandler } from 'notification-subscriber/webhooks'
import { callbackToken, demonstrate } from './support/demonstrate.js'

@Injectable()
class CoachingService {
  notice({ payload }: Notification<'lowEnergyAgentOpened'>, subscriptionId: number): void {
    console.log(`Subscription ${subscriptionId}: ${payload.username} sounds tired on ${payload.callId}`)
  }
}

@Module({ providers: [CoachingService] })
class AppModule {}

const receiver = new DeliveryReceiver({
  secrets: { token: callbackToken },
  onInvalid: (error) => console.error(error.message),
  onError: (error, { id }) => console.error(`Notification ${id} was not handled:`, error),
})

await demonstrate(receiver, async (tls) => {
  const app = await NestFactory.create<NestExpressApplication>(AppModule, {
    httpsOptions: tls,
    logger: false,
  })
  receiver.on('lowEnergyAgentOpened', (notification, { subscriptionId }) =>
    app.get(CoachingService).notice(notification, subscriptionId),
  )
  // Not a controller: Nest's body parser, which comes before those, answers malformed JSON with 400, more than 100 kB
  // with 413 and an unknown charset with 415, and each counts as a failed delivery. What `use` adds before `listen`
  // comes before the body parser.
  app.use('/notifications', toNodeHandler(receiver))
  await app.listen(0, '127.0.0.1')
  return { origin: await app.getUrl(), close: () => app.close() }
})
