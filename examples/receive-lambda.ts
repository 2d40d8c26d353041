/** The function in lambda/handler.ts behind an emulated function URL. Run it with `npx tsx examples/receive-lambda.ts`. */
import { createServer } from 'node:https'
import { callbackToken, demonstrate, listen } from './support/demonstrate.js'
import { functionUrl } from './support/function-url.js'

// On AWS the variable is set in the configuration of the function, before this code is loaded.
Object.assign(process.env, { CALLBACK_TOKEN: callbackToken })
const { handler, receiver } = await import('./lambda/handler.js')

await demonstrate(receiver, (tls) => listen(createServer(tls, functionUrl(handler))))
