/** Which names and values of headers can be sent. */

/** RFC 9110 section 5.6.2, `token`. */
export const headerName = /^[!#$%&'*+\-.^`|~\w]+$/
export const headerNameRule = "letters, digits and !#$%&'*+-.^_`|~ only"

/** RFC 9110 section 5.5: visible ASCII, with spaces and tabs inside. */
export const headerValue = /^(?!\s)[\t -~]*(?<!\s)$/
export const headerValueRule = 'visible ASCII only, and spaces or tabs in between'
