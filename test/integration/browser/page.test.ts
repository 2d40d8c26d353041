/** The emulator's page in a real browser: what a person sees and does. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseEnv, promisify } from 'node:util'
import { AxeBuilder } from '@axe-core/playwright'
import { startEmulator } from 'notification-subscriber/emulator'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { testWith } from '../../support/test-with.js'
import { Relay } from '../redis/relay.js'
import { launchChromium, openPage, World } from './support.js'

const test = testWith(World.start)

let browser: Browser

beforeAll(async () => {
  browser = await launchChromium()
})

afterAll(() => browser.close())

const timeLine = (page: Page) => page.locator('#time-line-list')
const subscriptions = (page: Page) => page.locator('#subscriptions-list')
const details = (page: Page) => page.getByRole('region', { name: 'Details' })
const row = (page: Page, text: RegExp) => page.locator('.list a.row').filter({ hasText: text })
const choose = (page: Page, name: RegExp) => page.getByRole('radio', { name }).check()
const openTab = (page: Page, name: string) => page.getByRole('navigation').getByRole('link', { name }).click()

async function sendByForm(page: Page, username: string): Promise<void> {
  await openTab(page, 'Send')
  await page.locator('#send-user').fill(username)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
}

const clipboard = { permissions: ['clipboard-read', 'clipboard-write'] }
const copiedIn = (page: Page) => page.evaluate<string>('navigator.clipboard.readText()')

describe('the page', () => {
  test('says what to do while nothing has happened, and copies the environment with the secret in it', async (world) => {
    const page = await world.open(browser, clipboard)
    await page.getByText('Nothing has happened yet').waitFor()
    await page.getByText('No subscription yet').waitFor()
    const { clientSecret, baseUrl } = world.emulator
    expect(await page.content()).not.toContain(clientSecret)
    await page.getByRole('button', { name: 'Copy environment variables' }).first().click()
    await page.getByText('Copied').waitFor()
    expect(parseEnv(await copiedIn(page))).toMatchObject({
      NOTIFICATION_BASE_URL: baseUrl,
      NOTIFICATION_CLIENT_SECRET: clientSecret,
      NOTIFICATION_CA_FILE: 'emulator-ca.pem',
      CALLBACK_TOKEN: expect.stringMatching(/^[\w-]{32}$/),
    })
    await page.getByRole('link', { name: /certificate/ }).waitFor()
  })

  test('connects a client as the terminal says: with its variables, its CA file and its mode', async () => {
    const environment = { NOTIFICATION_CA_FILE: '/home/dev/ca.pem', CALLBACK_TOKEN: 'of-the-terminal' }
    await using emulator = await startEmulator({ page: { environment }, allowInsecureLoopback: true })
    await using opened = await openPage(browser, emulator.pageUrl ?? '')
    const { page } = opened
    await page.getByRole('button', { name: 'Connect' }).click()
    const guide = page.getByRole('dialog')
    await guide.getByText('NOTIFICATION_CA_FILE=/home/dev/ca.pem').waitFor()
    await guide.getByText('fromEnv({ allowInsecureLoopback: true })').waitFor()
    expect(await guide.getByRole('link', { name: /certificate/ }).count()).toBe(0)
    expect(await page.content()).not.toContain('of-the-terminal')
  })

  test('shows a subscription of a real client, and a notification sent by the form answered 204', async (world) => {
    const page = await world.open(browser)
    await world.subscribe('alice')
    await row(page, /alice #1/).waitFor()
    await openTab(page, 'Send')
    // The form has the user who is subscribed, in its field and in the payload.
    await expect.poll(() => page.getByLabel('Payload').inputValue()).toContain('"username": "alice"')
    expect(await page.locator('#send-user').inputValue()).toBe('alice')
    await page.getByText('1 subscription gets behavioral of alice: #1').waitFor()
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    // The result is a link.
    await page
      .getByRole('status')
      .getByRole('link', { name: /lowEnergyAgentOpened #1 .*204/ })
      .click()
    await details(page).getByText('"callId"').waitFor()
    expect(world.problems).toEqual([])
    expect([...world.origins]).toEqual([new URL(world.pageUrl).origin])
  })

  test('says before and after sending that no subscription matches, and why a payload cannot be sent', async (world) => {
    await world.subscribe('alice')
    const page = await world.open(browser)
    await sendByForm(page, 'mallory')
    await page.getByText('No active subscription is for behavioral of mallory.').waitFor()
    await page.getByText('#1 is for behavioral of alice.').waitFor()
    await page.getByText('Sent 0 callbacks.').waitFor()
    await page.getByLabel('Payload').fill('{')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('The payload is not JSON').waitFor()
    await page.getByLabel('Type', { exact: true }).selectOption('Another type…')
    await page.getByLabel('Counts as').selectOption('call-score')
    await page.getByText('No active subscription is for call-score of mallory.').waitFor()
  })

  test('says first why a callback failed, and with which secret it was sent', async (world) => {
    await world.subscribe('alice', { token: 'secret-of-the-receiver' })
    await world.subscribe('bob')
    const page404 =
      '<!doctype html><html><head><title>Error</title></head><body><pre>Cannot POST /</pre></body>'
    world.answers.push({ status: 401, body: '{"error":"wrong token"}' }, { status: 404, body: page404 })
    await world.notify('alice')
    await world.notify('bob')
    const page = await world.open(browser)
    await row(page, /empathyCueOpened #1.*for alice · {"error":"wrong token"}/).click()
    await details(page).getByText('"wrong token"', { exact: true }).waitFor()
    await details(page).getByText('content-type').first().waitFor()
    const shown = () => details(page).textContent()
    expect(await shown()).toMatch(/^empathyCueOpened ?401.*{"error":"wrong token"}.*token••••••••POST https:/)
    await page.getByRole('button', { name: 'Show secrets' }).click()
    await expect.poll(shown).toMatch(/^empathyCueOpened ?401.*tokensecret-of-the-receiverPOST https:/)
    await row(page, /404.*for bob · Error Cannot POST \//).click()
    await expect.poll(shown).toMatch(/^empathyCueOpened ?404.*Error Cannot POST \/Sent without a parameter: /)
    // As the receiver of this package answers.
    world.answers.push(401)
    await world.notify('bob')
    await row(page, /status 401: see callback\.refused in the receiver's log/).waitFor()
  })

  test('shows what the emulator answered to a create, and leads to the subscription that it made', async (world) => {
    await world.subscribe('alice')
    const page = await world.open(browser)
    await row(page, /create #1/).click()
    await details(page).getByText("The emulator's answer").waitFor()
    await details(page).getByText('"subscription_id"').waitFor()
    await details(page).getByRole('link', { name: 'Subscription #1' }).click()
    // Its time line has the create, too: as a list, and by the filter.
    await details(page)
      .getByRole('link', { name: /create .*201/ })
      .waitFor()
    await details(page).getByRole('button', { name: 'Show only its entries' }).click()
    await expect
      .poll(() => timeLine(page).locator('a.row').allTextContents())
      .toEqual([expect.stringMatching(/create #1/)])
  })

  test('shows the end of a subscription with the three failures before it, and their answers', async (world) => {
    const page = await world.open(browser)
    await world.subscribe('alice')
    for (const body of ['first reason', 'second reason']) world.answers.push({ status: 500, body })
    await world.notify('alice', 2)
    await page.getByRole('img', { name: '2 failures in a row' }).waitFor()
    world.answers.push({ status: 503, body: 'third reason' })
    await world.notify('alice')
    await row(page, /Subscription #1 ended.*three callbacks in a row failed/).click()
    await expect
      .poll(() => details(page).locator('.entry-links > li').allTextContents())
      .toEqual(
        [/500.*first reason/, /500.*second reason/, /503.*third reason/].map((text) =>
          expect.stringMatching(text),
        ),
      )
    await choose(page, /^Ended 1$/)
    await row(page, /alice #1.*three callbacks in a row failed/).click()
    await details(page).getByText('It ended because three callbacks in a row failed.').waitFor()
  })

  test('shows an end by three failures in red wherever it stands, and another end nowhere in red', async (world) => {
    await world.subscribe('alice')
    world.answers.push(...Array.from({ length: 3 }, () => ({ status: 500, body: '' })))
    await world.notify('alice', 3)
    await world.subscribe('bob')
    world.emulator.endSubscription(2)
    const page = await world.open(browser)
    await choose(page, /^Ended 2$/)
    const coloursOf = (text: string) =>
      page.evaluate<string[]>(`[...document.querySelectorAll('main span')]
        .filter(({ firstChild }) => firstChild?.data === '${text}')
        .map((element) => getComputedStyle(element).color)`)
    const red = await page.evaluate<string>(`getComputedStyle(document.querySelector('.status.bad')).color`)
    for (const [place, times] of [
      ['time-line', 2],
      // A callback, the end, and the subscription.
      ['entry-3', 3],
      ['entry-6', 3],
      ['subscription-1', 4],
      ['subscription-2', 2],
    ] as const) {
      await page.evaluate(`location.hash = '${place}'`)
      await expect
        .poll(() => coloursOf('three callbacks in a row failed'))
        .toEqual(Array.from({ length: times }, () => red))
      const others = await coloursOf('the page or the program ended it')
      expect(others).not.toEqual([])
      expect(others).not.toContain(red)
    }
  })

  test('shows the callbacks of one notification together', async (world) => {
    await world.subscribe('alice')
    await world.subscribe('alice', {}, '/other')
    world.answers.push({ status: 500, body: '' })
    await world.notify('alice')
    await world.notify('alice')
    const page = await world.open(browser)
    const groups = page.locator('.group')
    await expect.poll(() => groups.count()).toBe(2)
    expect(await groups.last().textContent()).toMatch(/empathyCueOpened 2 callbacks1 failure/)
    await groups.last().getByRole('link').first().click()
    await details(page).getByText('Other callbacks of this notification').waitFor()
    // A filter that leaves one of them shows it on its own.
    await choose(page, /^Failures$/)
    await row(page, /empathyCueOpened #\d.*500/).waitFor()
    expect(await groups.count()).toBe(0)
  })

  test('sends a callback again by one click, to its subscription only', async (world) => {
    await world.subscribe('alice')
    await world.subscribe('alice', {}, '/other')
    world.answers.push({ status: 500, body: '' })
    await world.notify('alice')
    const page = await world.open(browser)
    await row(page, /500$/).click()
    await details(page).getByRole('button', { name: 'Resend' }).click()
    await details(page).getByText('Answered 204').waitFor()
    const failed = world.emulator.callbacks.find(({ status }) => status === 500)
    const last = world.emulator.callbacks.at(-1)
    expect(world.emulator.callbacks).toHaveLength(3)
    expect([last?.subscriptionId, last?.body]).toEqual([failed?.subscriptionId, failed?.body])
    await details(page)
      .getByRole('link', { name: /empathyCueOpened.*204/ })
      .first()
      .waitFor()
    await details(page).getByRole('button', { name: 'Change and send…' }).click()
    await expect.poll(() => page.locator('#send-type').inputValue()).toBe('empathyCueOpened')
    await expect.poll(() => page.getByLabel('Payload').inputValue()).toContain('"number": 0')
  })

  test('copies a callback and a request as curl, which do the same again', async (world) => {
    await using folder = await temporaryFolder()
    await world.subscribe('alice', { token: "it's secret" })
    await world.notify('alice')
    await writeFile(`${folder.path}/emulator-ca.pem`, world.emulator.ca)
    const page = await world.open(browser, clipboard)
    const run = async (text: RegExp) => {
      await row(page, text).click()
      await details(page).getByRole('heading', { name: text }).waitFor()
      await details(page).getByRole('button', { name: 'Copy as curl' }).click()
      await page.getByText('Copied').waitFor()
      const command = await copiedIn(page)
      await promisify(execFile)('sh', ['-c', `${command} --silent`], { cwd: folder.path })
    }
    const received = world.received.length
    await run(/empathyCueOpened/)
    expect(world.received.slice(received)).toEqual(world.received.slice(received - 1, received))
    await run(/create/)
    expect(world.emulator.requests.at(-1)).toMatchObject({
      operation: 'create',
      status: 409,
      body: world.emulator.requests.find(({ operation }) => operation === 'create')?.body,
    })
  })

  test('revokes tokens: the next call is refused once, and then succeeds', async (world) => {
    await world.subscribe('alice')
    const page = await world.open(browser)
    await page.getByRole('button', { name: 'Revoke tokens' }).click()
    await row(page, /Access tokens revoked/).waitFor()
    await world.subscribe('bob')
    await row(page, /create.*401/).waitFor()
    expect(world.emulator.subscriptions).toHaveLength(2)
  })

  test('does not show a 409 to an identical subscription as a failure, but one to an overlap, and says why', async (world) => {
    const page = await world.open(browser)
    await world.subscribe('alice')
    for (const usernames of [['alice'], ['alice', 'bob']]) {
      await world.client.tryCreateSubscription({
        notificationTypes: ['behavioral'],
        usernames,
        callbackUrl: world.callbackUrl,
      })
    }
    await row(page, /create #1.*409.*alice ·/).click()
    await details(page).getByText('Subscription 1 is identical').first().waitFor()
    await details(page).getByRole('link', { name: 'Subscription #1' }).waitFor()
    await choose(page, /^Failures/)
    await row(page, /create.*409.*covers some of the users/).click()
    await details(page).getByText('Subscription 1 covers some of the users').first().waitFor()
    expect(await row(page, /create.*409/).count()).toBe(1)
    // Of one colour, also that of a callback.
    world.answers.push(409)
    await world.notify('alice')
    await choose(page, /^All$/)
    await expect
      .poll(() => page.locator('.list .status.neutral').allTextContents())
      .toEqual(['409', '409', '409'])
  })

  test('plans faults, and lifts one of them', async (world) => {
    await world.subscribe('alice')
    const page = await world.open(browser)
    await openTab(page, 'Faults')
    await page.getByLabel('How often').selectOption('until I lift it')
    await page.getByRole('button', { name: 'Plan it' }).click()
    await page.getByText('Every callback: status 503').waitFor()
    await page.getByLabel('What fails').selectOption('Token requests')
    await page.getByLabel('How often').selectOption('2 times')
    await page.getByRole('button', { name: 'Plan it' }).click()
    await page.getByText('The next 2 token requests: status 503').waitFor()
    await page.getByLabel('How they fail').selectOption('get half a body')
    await page.getByLabel('What fails').selectOption('Callbacks')
    expect(await page.getByLabel('How they fail').inputValue()).toBe('status')
    await world.notify('alice', 2)
    await expect.poll(() => row(page, /empathyCueOpened #1.*fault: status 503 · localhost/).count()).toBe(2)
    await page.getByRole('button', { name: 'Lift', exact: true }).first().click()
    await page.getByText('Every callback:').waitFor({ state: 'hidden' })
    await world.notify('alice')
    await row(page, /empathyCueOpened #1.*204/).waitFor()
    await page.getByText('The next 2 token requests: status 503').waitFor()
  })

  test('ends a subscription, and fails the next callback of one', async (world) => {
    await world.subscribe('alice')
    const page = await world.open(browser)
    await row(page, /alice #1/).click()
    await page.getByRole('button', { name: 'Fail its next callback' }).click()
    await page.getByRole('link', { name: 'Faults 1' }).waitFor()
    await world.notify('alice')
    await page.getByRole('img', { name: '1 failure in a row' }).first().waitFor()
    await page.getByRole('button', { name: 'End it' }).click()
    await page.getByText('the page or the program ended it').first().waitFor()
    expect(world.emulator.subscriptions).toEqual([])
    await page.getByText('No subscription yet.').waitFor()
  })

  test('filters the time line by kind and by text', async (world) => {
    await world.subscribe('alice')
    await world.subscribe('bob')
    world.answers.push({ status: 500, body: 'out of order' })
    await world.notify('alice')
    await world.notify('bob')
    const page = await world.open(browser)
    const rows = timeLine(page).locator('a.row')
    const filter = page.locator('#time-line-filter')
    expect(await rows.count()).toBe(5)
    await choose(page, /^Callbacks$/)
    await expect.poll(() => rows.count()).toBe(2)
    await choose(page, /^Failures$/)
    await expect.poll(() => rows.count()).toBe(1)
    await choose(page, /^All$/)
    for (const [text, count] of [
      ['bob', 2],
      ['#1', 2],
      ['out of order', 1],
    ] as const) {
      await filter.fill(text)
      await expect.poll(() => rows.count()).toBe(count)
    }
    await filter.fill('no such thing')
    await page.getByText('None of 5 entries matches this filter.').waitFor()
    await page.getByRole('button', { name: 'Show all' }).click()
    await expect.poll(() => rows.count()).toBe(5)
  })

  test('pauses and clears the time line, and shows again what was cleared after a reload', async (world) => {
    await world.subscribe('alice')
    const page = await world.open(browser)
    const rows = timeLine(page).locator('a.row')
    await expect.poll(() => rows.count()).toBe(2)
    await page.getByRole('button', { name: 'Pause' }).click()
    await world.notify('alice', 3)
    await page.getByText('3 new').waitFor()
    expect(await rows.count()).toBe(2)
    await page.getByRole('button', { name: 'Pause' }).click()
    await expect.poll(() => rows.count()).toBe(5)
    // For a screen reader.
    await page.getByText('5 entries, 0 failures').waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.getByText('The time line is cleared.').waitFor()
    await world.notify('alice')
    await expect.poll(() => rows.count()).toBe(1)
    await page.reload()
    await expect.poll(() => rows.count()).toBe(6)
  })

  test('says when the emulator has ended, that another start has another address, and why nothing was copied', async (world) => {
    await world.subscribe('alice')
    const page = await world.open(browser, {}, '#entry-2')
    await world.emulator.close()
    await page.getByText('This emulator has ended.').waitFor()
    await page.getByText('After a restart the page has a new address').waitFor()
    await details(page).getByRole('button', { name: 'Copy as curl' }).click()
    await page.getByText('The emulator does not answer. Is it still running?').waitFor()
  })

  test('has an address for every entry and subscription, which a reload and the back button keep', async (world) => {
    await world.subscribe('alice')
    await world.notify('alice')
    const page = await world.open(browser, {}, '#subscription-1')
    const heading = () => page.locator('#details-heading').textContent()
    await expect.poll(heading).toBe('Subscription #1')
    await row(page, /empathyCueOpened/).click()
    await expect.poll(heading).toBe('empathyCueOpened')
    const address = page.url()
    await page.reload()
    await expect.poll(heading).toBe('empathyCueOpened')
    expect(page.url()).toBe(address)
    await page.goBack()
    await expect.poll(heading).toBe('Subscription #1')
    await page.goto(`${world.pageUrl}#entry-99`)
    await expect.poll(heading).toBe('Gone')
  })

  test('has everything again after a reload, and says when older entries are not shown', async (world) => {
    await world.subscribe('alice')
    await world.notify('alice', 3)
    await world.subscribe('bob')
    world.emulator.endSubscription(2)
    const page = await world.open(browser)
    const texts = () => timeLine(page).locator('a.row').allTextContents()
    const before = await texts()
    expect(before).toHaveLength(7)
    await page.reload()
    await expect.poll(texts).toEqual(before)
    await page.getByText('Ended 1', { exact: true }).waitFor()

    for (let i = 0; i < 1_000; i++) await world.emulator.fetch(new Request(`${world.emulator.baseUrl}/${i}`))
    await page.getByText('7 older entries are not shown: the newest 1,000 are.').waitFor()
    await page.getByText('Ended 1', { exact: true }).waitFor()
  })

  test('shows what came before it was ready to listen', async (world) => {
    await world.subscribe('alice')
    const page = await world.open(browser)
    // The page's effects wait for a timer; its events do not.
    await page.addInitScript(`
      const { setTimeout } = window
      window.setTimeout = (callback, delay = 0) => setTimeout(callback, delay + 500)
    `)
    await page.reload()
    await row(page, /alice #1/).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
  })

  test('says that it is live only when it shows every entry', async (world) => {
    await world.subscribe('alice')
    const page = await world.open(browser)
    // The first snapshot comes after the connection, when the test says so.
    await page.addInitScript(`
      const { addEventListener } = EventSource.prototype
      const snapshots = []
      globalThis.showSnapshots = () => {
        for (const show of snapshots) show()
        return snapshots.length > 0
      }
      EventSource.prototype.addEventListener = function (name, listener) {
        const held = (event) => snapshots.push(() => listener(event))
        addEventListener.call(this, name, name === 'snapshot' ? held : listener)
      }
    `)
    await page.reload()
    await expect.poll(() => page.getByText('Connecting to the emulator…').count()).toBe(2)
    await page.waitForFunction('globalThis.showSnapshots()')
    await page.getByText('Live', { exact: true }).waitFor()
    expect(await subscriptions(page).locator('a.row').count()).toBe(1)
    expect(await timeLine(page).locator('a.row').count()).toBe(2)
  })

  test('masks secrets until one switch shows them, for this tab', async (world) => {
    await world.subscribe('alice', { token: 'a-secret-of-the-receiver' })
    await world.notify('alice')
    const page = await world.open(browser)
    await row(page, /empathyCueOpened/).click()
    await details(page).getByText('••••••••', { exact: true }).waitFor()
    expect(await page.content()).not.toContain('a-secret-of-the-receiver')
    await page.getByRole('button', { name: 'Show secrets' }).click()
    await details(page).getByText('a-secret-of-the-receiver').waitFor()
    await page.reload()
    await details(page).getByText('a-secret-of-the-receiver').waitFor()
    await row(page, /alice #1/).click()
    await details(page).getByText('a-secret-of-the-receiver').waitFor()
    await page.getByRole('button', { name: 'Show secrets' }).click()
    await details(page).getByText('••••••••', { exact: true }).waitFor()
    expect(await page.content()).not.toContain('a-secret-of-the-receiver')
  })

  test('continues by itself after a lost connection, with the entries of the meantime', async (world) => {
    const { port } = new URL(world.pageUrl)
    await using wire = await Relay.start({ port: Number(port) })
    await using opened = await openPage(browser, world.pageUrl.replace(port, String(wire.port)))
    const { page } = opened
    await world.subscribe('alice')
    await row(page, /alice #1/).waitFor()
    wire.cut()
    await page.getByText('Not connected', { exact: true }).waitFor()
    await world.notify('alice')
    await world.subscribe('bob')
    wire.mend()
    await row(page, /empathyCueOpened #1/).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await row(page, /bob #2/).waitFor()
    expect(await timeLine(page).locator('a.row').count()).toBe(4)
  })

  test('can be used by the keyboard alone', async (world) => {
    await world.subscribe('alice')
    await world.notify('alice')
    const page = await world.open(browser)
    const focused = () => page.evaluate('document.activeElement.id')
    const tabTo = async (id: string) => {
      for (let i = 0; i < 40 && (await focused()) !== id; i++) await page.keyboard.press('Tab')
      expect(await focused()).toBe(id)
    }
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    expect(await focused()).toBe('time-line-filter')
    await page.reload()
    await page.getByText('Live', { exact: true }).waitFor()
    // Of each list one row stops the Tab key; arrows lead to the others.
    await tabTo('row-subscription-1')
    await tabTo('row-entry-3')
    for (const [key, number] of [
      ['ArrowDown', 2],
      ['ArrowUp', 3],
      ['End', 1],
      ['Home', 3],
      ['PageDown', 1],
      ['PageUp', 3],
      ['ArrowDown', 2],
    ] as const) {
      await page.keyboard.press(key)
      await expect.poll(focused).toBe(`row-entry-${number}`)
    }
    await page.keyboard.press('Enter')
    await expect.poll(focused).toBe('details-heading')
    expect(await page.locator('#details-heading').textContent()).toBe('create')
    await page.keyboard.press('Escape')
    await expect.poll(focused).toBe('row-entry-2')
    expect(await details(page).count()).toBe(0)
    // With details open they follow the arrows.
    await page.keyboard.press('Enter')
    await expect.poll(focused).toBe('details-heading')
    await page.locator('#row-entry-2').focus()
    await page.keyboard.press('Home')
    await expect.poll(() => page.locator('#details-heading').textContent()).toBe('empathyCueOpened')
    await page.getByRole('link', { name: 'Send' }).focus()
    await page.keyboard.press('Enter')
    await tabTo('send-user')
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type('alice')
    await page.keyboard.press('Enter')
    await page.getByRole('status').getByRole('link', { name: /204/ }).waitFor()
  })

  const missingIcons = `[...document.querySelectorAll('use')].map(({ href }) => href.baseVal)
    .filter((href) => !document.querySelector(href))`

  test.for(['light', 'dark'])(
    'has no violation that axe finds, in %s, wide and narrow',
    async (world, colorScheme) => {
      const found: string[] = []
      const check = async (page: Page, state: string) => {
        const axe = new AxeBuilder({ page })
        // The other rules are about the same elements in both.
        const { violations } = await (colorScheme === 'light'
          ? axe
          : axe.withRules('color-contrast')
        ).analyze()
        found.push(...violations.map(({ id, nodes }) => `${state}: ${id} at ${nodes[0]?.html}`))
        found.push(...(await page.evaluate<string[]>(missingIcons)))
      }
      const page = await world.open(browser, { colorScheme, reducedMotion: 'reduce' })
      await check(page, 'empty')
      await world.subscribe('alice', { token: 'secret' })
      await world.subscribe('bob')
      await world.subscribe('bob', {}, '/other')
      await world.notify('bob')
      world.answers.push({ status: 500, body: '{"a":1}' }, { status: 500, body: 'text' })
      await world.notify('alice', 2)
      world.emulator.injectFault('callback', { status: 503 }, { subscriptionId: 1 })
      world.emulator.injectFault('create', { delayMs: 2_000 }, { times: 9 })
      await world.notify('alice')
      await row(page, /Subscription #1 ended/).waitFor()
      await choose(page, /^Ended 1$/)
      for (const width of [1440, 390]) {
        await page.setViewportSize({ width, height: 844 })
        for (const place of [
          'time-line',
          'subscriptions',
          'send',
          'faults',
          'subscription-1',
          'entry-7',
          'entry-2',
        ]) {
          await page.evaluate(`location.hash = '${place}'`)
          await sleep(100)
          await check(page, `${place} at ${width}`)
        }
      }
      expect(found).toEqual([])
    },
  )

  test.for([1280, 390, 360])(
    'hides and cuts nothing, and breaks inside no word, at %i pixels',
    async (world, width) => {
      const tenant = (name: string) => `/api/v2/tenants/${name}/notifications?team=support&source=${name}`
      const parameters = { 'a-parameter-with-a-long-name': 'secret' }
      for (const name of ['acme', 'globex']) {
        await world.subscribe('firstname.lastname@department.example.com', parameters, tenant(name))
      }
      world.answers.push({ status: 500, body: '{"message":"no database"}' })
      const username = 'firstname.lastname@department.example.com'
      await world.emulator.notify({ type: 'continuousSpeakingAgentOpened', username })
      world.emulator.injectFault('callback', { status: 503 }, { times: 3 })
      const page = await world.open(browser, { viewport: { width, height: 900 } })
      const places = ['time-line', 'subscriptions', 'subscription-1', 'entry-2', 'entry-4', 'entry-5']
      for (const place of [...places, 'send', 'faults']) {
        await page.evaluate(`location.hash = '${place}'`)
        if (place === 'time-line') await page.getByRole('button', { name: 'Connect' }).click()
        await sleep(100)
        // Whatever is shown lies within the window, and no text is wider than its box or cut in a word.
        const problems = await page.evaluate<string[]>(`(() => {
        const found = []
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
        while (texts.nextNode()) {
          const { currentNode: text } = texts
          const box = text.parentElement
          if (!box.checkVisibility({ visibilityProperty: true }) || box.closest('.visually-hidden')) continue
          const { left, right, width } = box.getBoundingClientRect()
          if (width > 1 && (left < -1 || right > innerWidth + 1)) found.push('outside: ' + text.data)
          if (getComputedStyle(box).textOverflow === 'ellipsis') found.push('cut: ' + text.data)
          for (const { index, 0: word } of text.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
            const range = document.createRange()
            range.setStart(text, index)
            range.setEnd(text, index + word.length)
            if (new Set(Array.from(range.getClientRects(), ({ top }) => top)).size > 1) found.push('broken: ' + word)
          }
        }
        return found
      })()`)
        expect([place, problems]).toEqual([place, []])
        if (place === 'time-line') await page.keyboard.press('Escape')
        for (const name of ['Time line', 'Subscriptions', 'Send', 'Faults']) {
          if (width < 860) {
            expect(await page.getByRole('navigation').getByRole('link', { name }).isVisible()).toBe(true)
          }
        }
      }
      for (const name of ['acme', 'globex']) {
        const shown = subscriptions(page)
          .locator('a.row')
          .filter({ hasText: tenant(name) })
        expect(await shown.count()).toBe(1)
      }
    },
  )

  test.for([1440, 1000])(
    'gives details the widest pane at %i pixels, and the subscriptions the narrowest',
    async (world, width) => {
      await world.subscribe('alice')
      const page = await world.open(browser, { viewport: { width, height: 800 } }, '#entry-1')
      const widthOf = async (name: string) =>
        (await page.getByRole('region', { name, exact: true }).boundingBox())?.width ?? 0
      await details(page).waitFor()
      const [rail, line, open] = await Promise.all(
        ['Subscriptions', 'Time line', 'Details'].map((name) =>
          name === 'Subscriptions' && width < 1180 ? 0 : widthOf(name),
        ),
      )
      expect([rail, line, open]).toEqual([rail, line, open].sort((a = 0, b = 0) => a - b))
      expect(line).toBeGreaterThan(300)
    },
  )

  test('stays usable with 10,000 subscriptions, and finds one among them', async (world) => {
    const { emulator } = world
    const authorization = `Basic ${btoa(`${emulator.username}:${emulator.password}`)}`
    for (let i = 0; i < 10_000; i++) {
      const body = new URLSearchParams({
        notification_type: 'behavioral',
        username: `agent-${i}`,
        callback_url: world.callbackUrl,
      })
      const request = new Request(`${emulator.baseUrl}/api/subscriptions`, {
        method: 'POST',
        headers: { authorization },
        body,
      })
      await emulator.fetch(request)
    }
    const page = await world.open(browser)
    await page.getByText('Active 10,000').waitFor()
    await page.getByText('9,000 more: the filter finds them.').waitFor()
    await page.locator('#subscriptions-filter').fill('agent-4321')
    await row(page, /agent-4321/)
      .first()
      .waitFor()
    await expect.poll(() => subscriptions(page).locator('a.row').count()).toBe(1)
  })

  test('stays usable while thousands of requests arrive: a click opens one, and a scrolled list keeps its place', async (world) => {
    const page = await world.open(browser)
    const { emulator } = world
    const rows = timeLine(page).locator('a.row')
    const send = async (from: number, to: number) => {
      for (let i = from; i < to; i++) {
        await emulator.fetch(new Request(`${emulator.baseUrl}/number-${i}`))
        // As fast as the page could ever see them, and still one after the other.
        if (i % 10 === 0) await sleep(1)
      }
    }
    await send(0, 400)
    await rows.nth(300).waitFor({ state: 'attached' })
    await timeLine(page).evaluate((list) => list.scrollTo({ top: 5_000 }))
    await sleep(200)
    const inSight = () =>
      page.evaluate<string>(`(() => {
        const { x, y } = document.querySelector('#time-line-list').getBoundingClientRect()
        return document.elementFromPoint(x + 100, y + 100).closest('a').id
      })()`)
    const before = await inSight()
    await send(400, 500)
    await row(page, /GET \/number-499/).waitFor({ state: 'attached' })
    await expect.poll(inSight).toBe(before)
    const flood = send(500, 3_000)
    const box = await timeLine(page).boundingBox()
    if (box === null) throw new Error('the time line is not in sight')
    await page.mouse.click(box.x + box.width / 2, box.y + 100)
    await page.locator('#details-heading').waitFor()
    await flood
    await row(page, /GET \/number-2999/).waitFor()
    await expect.poll(() => rows.count()).toBe(1_000)
    expect(world.problems).toEqual([])
  })
})
