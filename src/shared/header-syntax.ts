/** What can be the name and the value of an HTTP header, and how to say so. */

/** RFC 9110 section 5.6.2, `token`. */
export const headerName = /^[!#$%&'*+\-.^`|~\w]+$/
export const headerNameRule = "letters, digits and !#$%&'*+-.^_`|~ only"

/** RFC 9110 section 5.5: visible ASCII, with spaces and tabs inside. */
export const headerValue = /^(?!\s)[\t -~]*(?<!\s)$/
export const headerValueRule = 'visible ASCII only, with spaces and tabs inside'
