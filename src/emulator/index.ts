/**
 * The notification service, in process, for tests and local work.
 *
 * @module notification-subscriber/emulator
 */

export type { EmulatorEvents, EmulatorListener } from './activity/activity.js'
export type { RecordedEntry } from './activity/history.js'
export type { RecordedCallback } from './callbacks/callback-log.js'
export type { EmulatedNotification } from './callbacks/emulated-notification.js'
export type { CallbackResult } from './callbacks/notifier.js'
export { sampleNotification } from './callbacks/sample-notification.js'
export type { Emulator, EmulatorClientOptions } from './emulator.js'
export type { EmulatorOptions } from './emulator-options.js'
export type { KeyAndCertificate } from './https/certificate.js'
export { type EmulatorHandlersOptions, emulatorHandlers, type MswHttp } from './msw-handlers.js'
export type { CallbackFault, CallbackFaultOptions, EmulatorOperation, Fault } from './service/faults.js'
export type { RecordedRequest, RequestCounts } from './service/request-log.js'
export type { EndReason, SubscriptionRecord } from './service/subscription-store.js'
export { startEmulator } from './start-emulator.js'
