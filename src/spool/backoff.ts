/** When a delivery that failed is tried again, and when somebody is told. */

/** The longest time between two attempts, in milliseconds. */
export const maxBackoffMs = 60_000

const firstBackoffMs = 1_000
const firstReportedAttempt = 10
const reportIntervalMs = 3_600_000

/** How long to wait after so many failures: 1 s, 2 s, 4 s and so on to 1 min. */
export function backoffMs(attempts: number): number {
  return Math.min(firstBackoffMs * 2 ** (attempts - 1), maxBackoffMs)
}

/** Whether a failure is to be reported: the tenth, and then one an hour. */
export function isReportDue(attempts: number, reportedAt: number | undefined, now: number): boolean {
  return (
    attempts >= firstReportedAttempt && (reportedAt === undefined || now - reportedAt >= reportIntervalMs)
  )
}
