/**
 * The parts of a request and a response that the Node handler uses: those of `node:http`, `node:https` and
 * `node:http2`, and of what Express, Connect and NestJS make of them.
 */

export interface NodeRequest {
  readonly method?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Names and values in turn, as they were sent. */
  readonly rawHeaders?: readonly string[] | undefined
  readonly httpVersionMajor?: number | undefined
  /** Of `node:http2`. */
  readonly stream?: { close(code: number): unknown } | undefined
  /** What a body parser that ran before left here. */
  readonly body?: unknown
  readonly destroyed?: boolean | undefined
  readonly readableEnded?: boolean | undefined
  readonly readableDidRead?: boolean | undefined
  /** What `setEncoding` was called with. */
  readonly readableEncoding?: BufferEncoding | null | undefined
  on(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown
  on(event: 'end' | 'close', listener: () => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  resume(): unknown
}

export interface NodeResponse {
  statusCode: number
  readonly headersSent: boolean
  setHeader(name: string, value: string): unknown
  end(): unknown
}
