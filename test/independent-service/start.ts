/** Starts `service.py`: the notification service a second time, written in Python from the interface document alone. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import * as z from 'zod'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'

const program = fileURLToPath(new URL('service.py', import.meta.url))

/** Method, path and place of the id of an operation that the interface document does not specify. */
export interface ServiceRoute {
  readonly method: string
  /** With `{id}` if the id stands in the path. */
  readonly path: string
  readonly id: 'path' | 'query' | 'form' | 'json'
  /** The name of the id in a query or a body. */
  readonly field?: string
  /** How an update sends its parameters. */
  readonly format?: 'form' | 'json'
  readonly status: number
}

/** What the interface document leaves open; defaults and meanings stand in `service.py`. */
export interface ServiceSettings {
  readonly prefix?: string
  readonly tokenType?: string
  readonly expiresIn?: number
  readonly expiresInAsText?: boolean
  readonly unsubscribe?: ServiceRoute | null
  readonly update?: ServiceRoute | null
  readonly missing?: number
  readonly unknown?: { readonly status: number; readonly location?: string }
  readonly errors?: 'text' | 'html' | 'problem' | 'empty'
  readonly firstId?: number
  readonly idStep?: number
  readonly idAsText?: readonly ('answer' | 'callback')[]
  readonly created?: number
  readonly formFirst?: boolean
  readonly gzip?: 'never' | 'accepted' | 'always' | 'errors'
  readonly chunked?: boolean
  readonly close?: boolean
  readonly http?: '1.0' | '1.1'
  readonly busy?: { readonly status: number; readonly retryAfter: 'seconds' | 'date' }
  readonly permittedHeaders?: readonly string[]
}

const subscriptionsSchema = z.array(
  z.object({
    id: z.number(),
    types: z.array(z.string()),
    users: z.array(z.string()),
    callbackUrl: z.string(),
    /** Parameters and permitted headers. */
    values: z.record(z.string(), z.string()),
  }),
)

const requestsSchema = z.array(
  z.object({
    operation: z.enum(['create', 'unsubscribe', 'update', 'unknown']),
    method: z.string(),
    path: z.string(),
    status: z.number(),
  }),
)

const callbacksSchema = z.array(
  z.object({
    id: z.number(),
    notificationId: z.string(),
    /** Nothing if the receiver could not be reached. */
    status: z.number().nullable(),
    ended: z.boolean(),
  }),
)

const addressesSchema = z.object({ baseUrl: z.string(), authUrl: z.string(), controlUrl: z.string() })

export interface IndependentService extends AsyncDisposable {
  readonly baseUrl: string
  readonly authUrl: string
  readonly tls: { readonly key: string; readonly cert: string }
  readonly ca: string
  readonly caFile: string
  subscriptions(): Promise<z.infer<typeof subscriptionsSchema>>
  /** The requests to the service so far; not those of tokens. */
  requests(): Promise<z.infer<typeof requestsSchema>>
  /** Ends a subscription as three failed callbacks do. */
  end(id: number): Promise<void>
  /** Sends a notification about a user to every subscription of that user; resolves when all were answered. */
  notify(username: string): Promise<z.infer<typeof callbacksSchema>>
}

export async function startIndependentService(settings: ServiceSettings): Promise<IndependentService> {
  const folder = await mkdtemp(join(tmpdir(), 'notification-subscriber-independent-'))
  const { ca, tls } = createLoopbackCertificate()
  const caFile = join(folder, 'ca.pem')
  const files = { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  await Promise.all([
    writeFile(caFile, ca),
    writeFile(files.certificate, tls.cert),
    writeFile(files.key, tls.key),
  ])
  const given = JSON.stringify({ ...files, callbackAuthority: caFile, ...settings })
  const child = spawn('python3', ['-I', program, given], { stdio: ['pipe', 'pipe', 'inherit'] })
  const closed = once(child, 'close')
  const stop = async () => {
    child.stdin.end()
    await closed
    await rm(folder, { recursive: true })
  }
  const firstLine = once(createInterface({ input: child.stdout }), 'line')
  const [line] = await Promise.race([firstLine, closed.then(() => ['{}'])])
  // Fails here if the program has ended; what it said is on standard error.
  const { baseUrl, authUrl, controlUrl } = addressesSchema.parse(JSON.parse(line))

  const control = async (method: string, path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`${controlUrl}/${path}`, { method, body: body ? JSON.stringify(body) : null })
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}`)
    return answer.json()
  }
  return {
    ...{ baseUrl, authUrl, tls, ca, caFile },
    subscriptions: async () => subscriptionsSchema.parse(await control('GET', 'subscriptions')),
    requests: async () => requestsSchema.parse(await control('GET', 'requests')),
    end: async (id) => void (await control('DELETE', `subscriptions/${id}`)),
    notify: async (username) => callbacksSchema.parse(await control('POST', 'notifications', { username })),
    [Symbol.asyncDispose]: stop,
  }
}
