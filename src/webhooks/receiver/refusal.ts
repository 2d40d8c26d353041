/** Callbacks that are refused because they do not come from the service. */

/** A request that was refused, as `onRefused` gets it. */
export interface RefusedCallback {
  /**
   * 401: a secret is missing, wrong or there twice; 405: the method is not POST; 413: the body is larger than
   * `maxBodyBytes`.
   */
  readonly status: 401 | 405 | 413
  /** Why the request was refused, for people; never holds a value of a header. */
  readonly reason: string
  /** With a 401: the name of the header that decided, as it stands in `secrets`. */
  readonly header?: string | undefined
}
