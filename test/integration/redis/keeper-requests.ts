/** What the keepers asked of the service, and which of them did, as the emulator recorded it. */
import type { Emulator, RecordedRequest } from 'notification-subscriber/emulator'
import type { SubscriptionHistory } from './subscription-history.js'

export interface KeeperRequest {
  readonly process: string
  readonly kind: 'create' | 'recreate' | 'update' | 'unsubscribe'
  readonly username: string
  /** The subscription that is to be changed, or was made. */
  readonly subscriptionId: number | undefined
  readonly token: string | undefined
  /** When it arrived, in milliseconds since 1970. */
  readonly from: number
  /** When its answer went out, or the connection broke. */
  readonly to: number
  /** None where the connection broke. */
  readonly status: number | undefined
}

export class KeeperRequests {
  readonly all: KeeperRequest[] = []
  /** Secrets that came along. */
  readonly accessTokens = new Set<string>()
  readonly #history: SubscriptionHistory

  constructor(emulator: Emulator, history: SubscriptionHistory) {
    this.#history = history
    emulator.on('request', (request) => {
      const { operation } = request
      if (operation !== 'token' && operation !== 'unknown') this.#note(request, operation)
    })
  }

  #note(request: RecordedRequest, operation: 'create' | 'update' | 'unsubscribe'): void {
    const accessToken = request.headers.authorization?.replace('Bearer ', '') ?? ''
    this.accessTokens.add(accessToken)
    const { scope } = JSON.parse(Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString())
    // The test's own client has no scope.
    if (typeof scope !== 'string') return
    const form = new URLSearchParams(request.body)
    const isCreate = operation === 'create'
    const id = isCreate ? undefined : Number(request.path.split('/').at(-1))
    const username = isCreate ? form.get('username') : this.#history.find(id)?.subscription.usernames.join()
    const made = isCreate && request.status === 201 ? this.#history.of(username ?? '').at(-1) : undefined
    const { startedAt: from, durationMs = 0, status } = request
    this.all.push({
      process: scope,
      kind: isCreate && form.get('recreateIfExists') === 'true' ? 'recreate' : operation,
      username: username ?? '',
      subscriptionId: id ?? made?.subscription.subscriptionId,
      token: form.get('token') ?? undefined,
      from,
      to: from + durationMs,
      status,
    })
  }
}
