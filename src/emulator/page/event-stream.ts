/** Server-sent events: to each page a snapshot first, then what changed, gathered so that bursts stay few messages. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Journal } from './journal.js'

/** At 100 changes a second a page gets ten messages, and an eye sees no delay. */
const gatherMs = 100

/** Keeps proxies and sleeping computers from taking a silent connection for a dead one. */
const heartbeatMs = 15_000

interface Reader {
  readonly response: ServerResponse
  /** The revision of the journal that this page has; `NaN` before its first snapshot. */
  revision: number
}

export class EventStream {
  readonly #journal: Journal
  readonly #run: string
  readonly #readers = new Set<Reader>()
  readonly #heartbeat: NodeJS.Timeout
  #gathering: NodeJS.Timeout | undefined

  /** `run` tells apart the ids of two runs of the emulator. */
  constructor(journal: Journal, run: string) {
    this.#journal = journal
    this.#run = run
    this.#heartbeat = setInterval(() => {
      for (const { response } of this.#readers) response.write(':\n\n')
    }, heartbeatMs).unref()
  }

  /** Answers a page: a browser that lost the connection says by `Last-Event-ID` what it has, and gets the rest. */
  open({ headers }: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    const [run, revision] = String(headers['last-event-id'] ?? '').split(' ')
    const reader = { response, revision: run === this.#run ? Number(revision) : Number.NaN }
    this.#readers.add(reader)
    response.once('close', () => this.#readers.delete(reader))
    // A slow reader has read: it gets everything that it missed at once.
    response.on('drain', () => this.#send(reader))
    response.write('retry: 1000\n\n')
    this.#send(reader)
  }

  /** To be called when the journal has something new: every page gets it soon. */
  announce(): void {
    if (this.#readers.size === 0) return
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined
      for (const reader of this.#readers) this.#send(reader)
    }, gatherMs).unref()
  }

  close(): void {
    clearInterval(this.#heartbeat)
    clearTimeout(this.#gathering)
    for (const { response } of this.#readers) response.end()
  }

  #send(reader: Reader): void {
    const { response } = reader
    // A slow reader is sent nothing until it has read.
    if (response.writableNeedDrain) return
    const { revision } = this.#journal
    if (reader.revision === revision) return
    const batch = this.#journal.changesSince(reader.revision)
    const [name, data] = batch === undefined ? ['snapshot', this.#journal.snapshot()] : ['batch', batch]
    reader.revision = revision
    response.write(`event: ${name}\nid: ${this.#run} ${revision}\ndata: ${JSON.stringify(data)}\n\n`)
  }
}
