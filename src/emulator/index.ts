/**
 * The notification service, in process, for tests and local work.
 *
 * @module notification-subscriber/emulator
 */

export type { EmulatedNotification } from './callbacks/emulated-notification.js'
export type { CallbackResult } from './callbacks/notifier.js'
export { type Emulator, type EmulatorClientOptions, startEmulator } from './emulator.js'
export type { EmulatorOptions } from './emulator-options.js'
export type { KeyAndCertificate } from './https/certificate.js'
export { emulatorHandlers } from './msw-handlers.js'
export type { EmulatorOperation, Fault } from './service/faults.js'
export type { RecordedRequest, RequestCounts } from './service/request-log.js'
export type { SubscriptionRecord } from './service/subscription-store.js'
