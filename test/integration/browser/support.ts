/** A real Chromium, an emulator with its page, a client and a receiver of callbacks. */
import { existsSync } from 'node:fs'
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { type Reaction, Receiver } from '../../emulator/support.js'

const executablePath = '/usr/bin/chromium'

/** One for a test file; what it does on its own is switched off. */
export function launchChromium(): Promise<Browser> {
  if (!existsSync(executablePath)) {
    throw new Error(
      `${executablePath} is not there. These tests need a browser: apt-get install --no-install-recommends chromium`,
    )
  }
  return chromium.launch({
    executablePath,
    args: [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
      '--disable-quic',
    ],
  })
}

/** An emulator with a page, and what talks to it. */
export class World {
  readonly emulator: Emulator
  readonly client: NotificationClient
  readonly callbackUrl: string
  /** What the receiver answers next; 204 when there is none. */
  readonly answers: Reaction[]
  readonly pageUrl: string
  readonly problems: string[] = []
  readonly origins = new Set<string>()
  readonly #receiver: Receiver
  #opened: AsyncDisposable | undefined

  private constructor(emulator: Emulator, receiver: Receiver) {
    this.emulator = emulator
    this.client = new NotificationClient(emulator.clientOptions)
    this.#receiver = receiver
    this.callbackUrl = receiver.url
    this.answers = receiver.reactions
    this.pageUrl = emulator.pageUrl ?? ''
  }

  static async start(): Promise<World> {
    const emulator = await startEmulator({ page: true })
    return new World(emulator, await Receiver.start(emulator))
  }

  /** The callbacks that arrived: path, headers that the service sends, and body. */
  get received() {
    return this.#receiver.callbacks.map(({ path, headers, text }) => ({
      ...{ path, text },
      sent: [headers.token, headers['content-type']],
    }))
  }

  /** @param query - what is open, as in the address */
  async open(browser: Browser, options: BrowserContextOptions = {}, query = ''): Promise<Page> {
    const opened = await openPage(browser, this.pageUrl + query, options, this)
    this.#opened = opened
    return opened.page
  }

  async subscribe(username: string, parameters: Record<string, string> = {}): Promise<void> {
    const wanted = { notificationTypes: ['behavioral'], usernames: [username], parameters } as const
    await this.client.createSubscription({ ...wanted, callbackUrl: this.callbackUrl })
  }

  async notify(username: string): Promise<void> {
    const about = { type: 'empathyCueOpened', category: 'behavioral', username } as const
    await this.emulator.notify({ ...about, payload: { number: 0 } })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened?.[Symbol.asyncDispose]()
    await this.client.close()
    await this.emulator.close()
    await this.#receiver[Symbol.asyncDispose]()
  }
}

/** The page in a window of its own; what goes wrong in it, and where it sends requests, is collected. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  { problems, origins }: Pick<World, 'problems' | 'origins'> = { problems: [], origins: new Set() },
): Promise<AsyncDisposable & { page: Page }> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options })
  const page = await context.newPage()
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text())
  })
  page.on('pageerror', (error) => problems.push(String(error)))
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url())
    // Data in the page itself is no request.
    if (protocol !== 'data:') origins.add(origin)
  })
  await page.goto(url)
  if (options.javaScriptEnabled !== false) await page.getByText('Live', { exact: true }).waitFor()
  return { page, [Symbol.asyncDispose]: () => context.close() }
}
