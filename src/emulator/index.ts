/**
 * The notification service, in process, for tests and local work.
 *
 * @module notification-subscriber/emulator
 */

export type { Route, Routes } from '../shared/routes.js'
export type {
  EmulatorEvents,
  RecordedAnswer,
  RecordedCallback,
  RecordedRequest,
  RequestCounts,
} from './activity.js'
export type { CallbackResult } from './callbacks.js'
export { type Emulator, type EmulatorClientOptions, startEmulator } from './emulator.js'
export type { CallbackFault, EmulatorOperation, Fault } from './faults.js'
export type { KeyAndCertificate } from './https/certificate.js'
export type { EmulatedNotification } from './notification.js'
export type { EmulatorOptions } from './options.js'
export type { EndReason, SubscriptionRecord } from './service/subscription-store.js'
