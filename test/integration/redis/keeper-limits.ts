/** Few and slow, so that a keeper that went beyond would be seen. */
export const keeperLimits = { maxRequestsPerSecond: 1, concurrency: 3 } as const
