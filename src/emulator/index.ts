/**
 * The notification service, in process, for tests and local work.
 *
 * @module notification-subscriber/emulator
 */
export type { KeyAndCertificate } from './certificate.js'
export type { CallbackResult } from './dispatcher.js'
export { type Emulator, type EmulatorClientOptions, startEmulator } from './emulator.js'
export type { EmulatorOperation, Fault } from './faults.js'
export { emulatorHandlers } from './msw-handlers.js'
export type { EmulatedNotification } from './notification.js'
export type { EmulatorOptions } from './options.js'
export type { RecordedRequest, RequestCounts } from './request-log.js'
export type { SubscriptionRecord } from './subscription-store.js'
