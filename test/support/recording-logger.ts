import type { Logger } from 'notification-subscriber'

export type LogLine = readonly [fields: object, message: string]

/** A logger that keeps its lines. */
export function recordingLogger(): Logger & { readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = []
  const log = (fields: object, message: string) => void lines.push([fields, message])
  return { lines, debug: log, info: log, warn: log, error: log }
}
