/** The longest delay that a timer takes, in milliseconds; a longer one would fire at once. */
export const maxDelayMs = 2 ** 31 - 1
