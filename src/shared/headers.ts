/** Which names and values of headers can be sent. */

/** RFC 9110 section 5.6.2, `token`. */
export const headerName = /^[!#$%&'*+\-.^`|~\w]+$/

/** RFC 9110 section 5.5: visible ASCII, with spaces and tabs inside. */
export const headerValue = /^(?!\s)[\t -~]*(?<!\s)$/

export function headerNameProblem(name: string): string | undefined {
  if (headerName.test(name)) return undefined
  return "cannot be the name of a header: letters, digits and !#$%&'*+-.^_`|~ only"
}

export function headerValueProblem(value: string): string | undefined {
  if (headerValue.test(value)) return undefined
  return 'cannot be the value of a header: visible ASCII only, and spaces or tabs in between'
}

/** Headers that say how a message itself is sent: a second value would break its framing, its body or its route. */
export const framingHeaders: readonly string[] = [
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]
