/** Starts `service.py`: the notification service a second time, written in Python from the interface document alone. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const program = fileURLToPath(new URL('service.py', import.meta.url))

/** Method, path and place of the id of an operation that the interface document does not specify. */
export interface ServiceRoute {
  readonly method: string
  /** With `{id}` if the id stands in the path. */
  readonly path: string
  readonly id: 'path' | 'query' | 'form'
  /** The name of the id in a query or a body. */
  readonly field?: string
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
  readonly gzip?: 'never' | 'accepted' | 'errors'
  readonly chunked?: boolean
  readonly close?: boolean
  readonly http?: '1.0' | '1.1'
  readonly busy?: { readonly status: number; readonly retryAfter: 'seconds' | 'date' }
  readonly permittedHeaders?: readonly string[]
}

interface Subscription {
  readonly id: number
  readonly types: readonly string[]
  readonly users: readonly string[]
  readonly callbackUrl: string
  /** Parameters and permitted headers. */
  readonly values: Readonly<Record<string, string>>
}

interface Callback {
  readonly id: number
  readonly notificationId: string
  /** Nothing if the receiver could not be reached. */
  readonly status: number | null
  readonly ended: boolean
}

export interface IndependentService extends AsyncDisposable {
  readonly baseUrl: string
  readonly authUrl: string
  readonly tls: { readonly key: string; readonly cert: string }
  readonly ca: string
  readonly caFile: string
  subscriptions(): Promise<Subscription[]>
  /** The requests to the service so far; not those of tokens. */
  requests(): Promise<{ readonly operation: string; readonly status: number }[]>
  /** Ends a subscription as three failed callbacks do. */
  end(id: number): Promise<void>
  /** Sends a notification about a user to every subscription of that user; resolves when all were answered. */
  notify(username: string): Promise<Callback[]>
}

export async function startIndependentService(settings: ServiceSettings): Promise<IndependentService> {
  const folder = await temporaryFolder()
  const { ca, tls } = createLoopbackCertificate()
  const caFile = join(folder.path, 'ca.pem')
  const files = { certificate: join(folder.path, 'cert.pem'), key: join(folder.path, 'key.pem') }
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
    await folder[Symbol.asyncDispose]()
  }
  const firstLine = once(createInterface({ input: child.stdout }), 'line')
  const [line] = await Promise.race([
    firstLine,
    closed.then(() => ['(it ended: what it said is on standard error)']),
  ])
  const { baseUrl, authUrl, controlUrl } = JSON.parse(line)

  const control = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${controlUrl}/${path}`, { method, body: body ? JSON.stringify(body) : null })
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}`)
    // Of `service.py`, and used by the tests as it is typed here.
    return (await answer.json()) as never
  }
  return {
    ...{ baseUrl, authUrl, tls, ca, caFile },
    subscriptions: () => control('GET', 'subscriptions'),
    requests: () => control('GET', 'requests'),
    end: (id) => control('DELETE', `subscriptions/${id}`),
    notify: (username) => control('POST', 'notifications', { username }),
    [Symbol.asyncDispose]: stop,
  }
}
