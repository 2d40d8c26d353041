import type { Logger } from 'notification-subscriber'

export interface LogLine {
  readonly level: string
  readonly fields: object
  readonly message: string
}

/** A logger that keeps its lines, except the one by which it is tried. */
export function recordingLogger(): Logger & { readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  const at = (level: string) => (fields: object, message: string) => {
    if (!isTrial(fields)) lines.push({ level, fields, message })
  }
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** Whether a line is the one by which a logger is tried at construction. */
export function isTrial(fields: object): boolean {
  return 'event' in fields && fields.event === 'logger.tried'
}
