import type { Logger } from 'notification-subscriber'

export type LogLine = readonly [fields: object, message: string]

/** A logger that keeps its lines, except the one by which it is tried. */
export function recordingLogger(): Logger & { readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = []
  const log = (fields: object, message: string) => {
    if (!isTrial(fields)) lines.push([fields, message])
  }
  return { lines, debug: log, info: log, warn: log, error: log }
}

/** Whether a line is the one by which a logger is tried at construction. */
export function isTrial(fields: object): boolean {
  return 'event' in fields && fields.event === 'logger.tried'
}
