/** The certificates in a text in PEM, each with its first and last line, also if line breaks became `\\n`, or lines are indented. */
export function certificatesIn(pem: string): readonly string[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  return found.map((each) => each.replace(/(?:\\[nr]|[ \t\r\n])+(?!CERTIFICATE)/g, '\n'))
}
