/** The words of errors. Advice names an option for a reader of code, and a variable or flag for one of the command line. */

/** What advice can name, as code names it. */
export const inCode = {
  /** An option of the client, and perhaps its value. */
  setting: (option: string, value?: string) =>
    value === undefined ? `\`${option}\`` : `\`${option}: '${value}'\``,
  auth: '`auth`',
  trust:
    'give the client the certificate of its authority as `ca` (in the environment: NOTIFICATION_CA_FILE), or set NODE_EXTRA_CA_CERTS',
  recreateIfExists: '`recreateIfExists: true`',
  unsubscribeRoute: 'the option `routes.unsubscribe`',
  updateRoute: 'the option `routes.update`',
  /** Advice at the end of a sentence; empty where the reader cannot follow it. */
  seeBody: ' See error.body.',
  orMoreTime: ', or allow more time with `timeoutMs`',
  orShorterWaits: ', or shorten the waits with `retry`',
}

export type View = Readonly<typeof inCode>

/** A message for one view. */
export type Words = (view: View) => string

const wordsOfErrors = new WeakMap<Error, Words>()

/** Makes an error with the words for code; {@link messageIn} has those for another view. */
export function worded<Made extends Error>(words: Words, make: (message: string) => Made): Made {
  const error = make(words(inCode))
  wordsOfErrors.set(error, words)
  return error
}

/** The message of an error as the reader of a view needs it. */
export function messageIn(view: View, error: Error): string {
  return wordsOfErrors.get(error)?.(view) ?? error.message
}
