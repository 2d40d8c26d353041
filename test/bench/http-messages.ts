/**
 * HTTP/1.1 messages on bare sockets, for the other side of what is measured: it must cost so little that it is
 * not itself what the figures show.
 */
import type { Socket } from 'node:net'

const headEnd = '\r\n\r\n'

/**
 * Calls `onMessage` for every message that arrives whole. Messages have a `Content-Length`, or no body.
 */
export function readMessages(socket: Socket, onMessage: (head: string, body: string) => void): void {
  let text = ''
  socket.setNoDelay(true)
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    text = text === '' ? chunk : text + chunk
    for (;;) {
      const end = text.indexOf(headEnd)
      if (end === -1) return
      const bodyStart = end + headEnd.length
      const head = text.slice(0, end)
      const bodyEnd = bodyStart + contentLength(head)
      if (text.length < bodyEnd) return
      const body = text.slice(bodyStart, bodyEnd)
      text = text.slice(bodyEnd)
      onMessage(head, body)
    }
  })
}

function contentLength(head: string): number {
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length === undefined && /\r\ntransfer-encoding:/i.test(head)) throw new Error(`chunked: ${head}`)
  return Number(length ?? 0)
}

export function message(startLine: string, headers: Readonly<Record<string, string>>, body: string): string {
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)) })
  return [startLine, ...lines.map(([name, value]) => `${name}: ${value}`), '', body].join('\r\n')
}
