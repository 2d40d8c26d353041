/** The emulator's page in a real browser: what a person sees and does. */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseEnv } from 'node:util'
import { AxeBuilder } from '@axe-core/playwright'
import { startEmulator } from 'notification-subscriber/emulator'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CuttableProxy } from './cuttable-proxy.js'
import { launchChromium, openPage, World } from './support.js'

let browser: Browser

beforeAll(async () => {
  browser = await launchChromium()
})

afterAll(() => browser.close())

const timeLine = (page: Page) => page.getByRole('listbox', { name: /^Time line/ })
const subscriptions = (page: Page) => page.getByRole('listbox', { name: /^Subscriptions/ })
/** A row of one of the lists: the selects of the forms have options, too. */
const option = (page: Page, name: RegExp) => page.getByRole('listbox').getByRole('option', { name })
const choose = (page: Page, name: RegExp) => page.getByRole('radio', { name }).check()

async function sendByForm(page: Page, username: string): Promise<void> {
  await page.getByRole('tab', { name: 'Send' }).click()
  await page.locator('#send-user').fill(username)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
}

describe('the page', () => {
  it('says what to do while nothing has happened, and copies the environment with the secret in it', async () => {
    await using world = await World.start()
    await using opened = await openPage(browser, world.pageUrl, {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const { page } = opened
    await page.getByText('Nothing has happened yet').waitFor()
    await page.getByText('No subscription yet').waitFor()
    const { clientSecret, baseUrl } = world.emulator
    expect(await page.content()).not.toContain(clientSecret)
    await page.getByRole('button', { name: 'Copy environment variables' }).first().click()
    await page.getByText('Copied').waitFor()
    const copied = parseEnv(await page.evaluate<string>('navigator.clipboard.readText()'))
    expect(copied).toMatchObject({
      NOTIFICATION_BASE_URL: baseUrl,
      NOTIFICATION_CLIENT_SECRET: clientSecret,
      NOTIFICATION_CA_FILE: 'emulator-ca.pem',
      CALLBACK_TOKEN: expect.stringMatching(/^[\w-]{32}$/),
    })
    await page.getByRole('link', { name: /certificate/ }).waitFor()
  })

  it('connects a client as the terminal says: with its variables, its CA file and its mode', async () => {
    const environment = { NOTIFICATION_CA_FILE: '/home/dev/ca.pem', CALLBACK_TOKEN: 'of-the-terminal' }
    await using emulator = await startEmulator({ page: { environment }, allowInsecureLoopback: true })
    await using opened = await openPage(browser, emulator.pageUrl ?? '')
    const { page } = opened
    await page.getByRole('button', { name: 'Connect a client' }).click()
    const guide = page.getByRole('dialog')
    await guide.getByText('NOTIFICATION_CA_FILE=/home/dev/ca.pem').waitFor()
    await guide.getByText('fromEnv({ allowInsecureLoopback: true })').waitFor()
    expect(await guide.getByRole('link', { name: /certificate/ }).count()).toBe(0)
    expect(await page.content()).not.toContain('of-the-terminal')
    // The button is above the code, and covers none of it.
    for (const snippet of await guide.locator('.snippet').all()) {
      const button = await snippet.getByRole('button').boundingBox()
      const code = await snippet.locator('pre').boundingBox()
      expect((button?.y ?? 0) + (button?.height ?? 0)).toBeLessThanOrEqual(code?.y ?? 0)
    }
  })

  it('shows a subscription of a real client, and a notification sent by the form answered 204', async () => {
    await using world = await World.start()
    await using opened = await openPage(browser, world.pageUrl)
    const { page, problems, origins } = opened
    await world.subscribe('alice')
    await subscriptions(page)
      .getByRole('option', { name: /alice #1/ })
      .waitFor()
    await page.getByRole('tab', { name: 'Send' }).click()
    // The form has the user who is subscribed, in its field and in the payload.
    await expect.poll(() => page.getByLabel('Payload').inputValue()).toContain('"username": "alice"')
    expect(await page.locator('#send-user').inputValue()).toBe('alice')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.locator('.results').getByText('204').waitFor()
    await option(page, /lowEnergyAgentOpened #1 .*204 .*for alice/).click()
    const details = page.getByRole('tabpanel', { name: 'Details' })
    await details.getByText('"callId"').waitFor()
    expect(problems).toEqual([])
    expect([...origins]).toEqual([new URL(world.pageUrl).origin])
  })

  it('says when no subscription wants a notification, and why a payload cannot be sent', async () => {
    await using world = await World.start()
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    await sendByForm(page, 'nobody')
    await page.getByText('Nothing was sent: no active subscription is for behavioral of nobody.').waitFor()
    await world.subscribe('alice')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.locator('.results').getByText('alice: behavioral').waitFor()
    await page.getByLabel('Payload').fill('{')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('The payload is not JSON').waitFor()
  })

  it('counts failures in a row as pips, and shows the subscription end at the third with its reason', async () => {
    await using world = await World.start()
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    await world.subscribe('alice')
    world.answers.push(500, 503)
    await world.notify('alice', 2)
    await page.getByRole('img', { name: '2 failures in a row' }).waitFor()
    world.answers.push(500)
    await world.notify('alice')
    await option(page, /Subscription #1 ended .*three callbacks in a row failed/).waitFor()
    await choose(page, /^Ended 1$/)
    await option(page, /alice #1 .*three callbacks in a row failed/).click()
    await page
      .getByRole('tabpanel', { name: 'Details' })
      .getByText('three callbacks in a row failed')
      .waitFor()
  })

  it('revokes tokens, so that the next call is refused once and then goes on', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    await page.getByRole('button', { name: 'Revoke tokens' }).click()
    await option(page, /Access tokens revoked/).waitFor()
    await world.subscribe('bob')
    await option(page, /create .*401/).waitFor()
    expect(world.emulator.subscriptions).toHaveLength(2)
  })

  it('takes a 409 to the very same subscription for no failure, one to an overlap for one, and says why', async () => {
    await using world = await World.start()
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    await world.subscribe('alice')
    for (const usernames of [['alice'], ['alice', 'bob']]) {
      await world.client.tryCreateSubscription({
        notificationTypes: ['behavioral'],
        usernames,
        callbackUrl: world.callbackUrl,
      })
    }
    const details = page.getByRole('tabpanel', { name: 'Details' })
    await option(page, /create .*409.* alice ·/).click()
    await details.getByText('Subscription 1 is identical').waitFor()
    await choose(page, /^Failures/)
    await option(page, /create .*409.* alice, bob ·/).click()
    await details.getByText('Subscription 1 covers some of the users').waitFor()
    expect(await option(page, /create .*409/).count()).toBe(1)
  })

  it('plans a fault that the next callback meets, and forgets those that are planned', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    await page.getByRole('tab', { name: 'Faults' }).click()
    await page.getByLabel('The next').fill('2')
    await page.getByRole('button', { name: 'Plan it' }).click()
    await page.getByText('callback: status 503').waitFor()
    await world.notify('alice')
    await option(page, /empathyCueOpened #1 .*503 .*fault: status 503/).waitFor()
    await page.getByText('1 time', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Forget all of them' }).click()
    await page.getByText('None. Plan three failing callbacks').waitFor()
    await world.notify('alice')
    await option(page, /empathyCueOpened #1 .*204/).waitFor()
  })

  it('ends a subscription, and fails the next callback of one', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    await subscriptions(page)
      .getByRole('option', { name: /alice #1/ })
      .click()
    await page.getByRole('button', { name: 'Fail its next callback' }).click()
    await page.getByRole('tab', { name: 'Faults 1' }).waitFor()
    await world.notify('alice')
    await page.getByRole('img', { name: '1 failure in a row' }).first().waitFor()
    await page.getByRole('button', { name: 'End it' }).click()
    await page.getByText('ended here, on request').first().waitFor()
    expect(world.emulator.subscriptions).toEqual([])
  })

  it('filters the time line by kind and by text', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    await world.subscribe('bob')
    world.answers.push(500)
    await world.notify('alice')
    await world.notify('bob')
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    const rows = timeLine(page).getByRole('option')
    expect(await rows.count()).toBe(5)
    await choose(page, /^Callbacks$/)
    await expect.poll(() => rows.count()).toBe(2)
    await choose(page, /^Failures$/)
    await expect.poll(() => rows.count()).toBe(1)
    await choose(page, /^All$/)
    await page.locator('#time-line-filter').fill('bob')
    await expect.poll(() => rows.count()).toBe(2)
    await page.locator('#time-line-filter').fill('#1')
    await expect.poll(() => rows.count()).toBe(1)
    await page.locator('#time-line-filter').fill('no such thing')
    await page.getByText('None of 5 entries matches this filter.').waitFor()
    await page.getByRole('button', { name: 'Show all' }).click()
    await expect.poll(() => rows.count()).toBe(5)
  })

  it('pauses and clears the time line, and shows again what was cleared, also after a reload', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    const rows = timeLine(page).getByRole('option')
    await expect.poll(() => rows.count()).toBe(2)
    await page.getByRole('button', { name: 'Pause' }).click()
    await world.notify('alice', 3)
    await page.getByText('3 new').waitFor()
    expect(await rows.count()).toBe(2)
    await page.getByRole('button', { name: 'Pause' }).click()
    await expect.poll(() => rows.count()).toBe(5)
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.getByText('The time line is cleared.').waitFor()
    await world.notify('alice')
    await expect.poll(() => rows.count()).toBe(1)
    await page.reload()
    await page.getByRole('button', { name: 'Show 5 cleared entries' }).click()
    await expect.poll(() => rows.count()).toBe(6)
  })

  it('says when the emulator has ended, and that another start has another address', async () => {
    await using world = await World.start()
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    await world.emulator.close()
    await page.getByText('This emulator has ended.').waitFor()
    await page.getByText('After a restart the page has a new address').waitFor()
  })

  it('has everything again after a reload, and says when older entries are gone', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    await world.notify('alice', 3)
    await world.subscribe('bob')
    world.emulator.endSubscription(2)
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    const texts = () => timeLine(page).getByRole('option').allTextContents()
    const before = await texts()
    expect(before).toHaveLength(7)
    await page.reload()
    await expect.poll(texts).toEqual(before)
    await page.getByText('Ended 1').waitFor()

    for (let i = 0; i < 1_000; i++) await world.emulator.fetch(new Request(`${world.emulator.baseUrl}/${i}`))
    await timeLine(page).evaluate((list) => list.scrollTo({ top: list.scrollHeight }))
    await page.getByText('7 older entries are gone: the emulator keeps the last 1,000.').waitFor()
  })

  it('shows what came before it was ready to listen', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    // The page's effects wait for a timer; its events do not.
    await page.addInitScript(`
      const { setTimeout } = window
      window.setTimeout = (callback, delay = 0) => setTimeout(callback, delay + 500)
    `)
    await page.reload()
    await option(page, /alice #1/).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
  })

  it('is live when it shows what there is, and claims nothing before', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
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
        if (name === 'open') addEventListener.call(this, name, () => (document.title = 'Connected'))
      }
    `)
    await page.reload()
    await page.waitForFunction('document.title === "Connected"')
    await expect.poll(() => page.getByText('Connecting to the emulator…').count()).toBe(2)
    await page.waitForFunction('globalThis.showSnapshots()')
    await page.getByText('Live', { exact: true }).waitFor()
    expect(await subscriptions(page).getByRole('option').count()).toBe(1)
    expect(await timeLine(page).getByRole('option').count()).toBe(2)
  })

  it('masks secrets until they are revealed', async () => {
    await using world = await World.start()
    await world.subscribe('alice', { token: 'a-secret-of-the-receiver' })
    await world.notify('alice')
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    await option(page, /empathyCueOpened/).click()
    await page.getByText('••••••••', { exact: true }).waitFor()
    expect(await page.content()).not.toContain('a-secret-of-the-receiver')
    await page.getByRole('button', { name: 'Reveal secrets' }).click()
    await page.getByText('a-secret-of-the-receiver').waitFor()
    await page.getByRole('button', { name: 'Hide secrets' }).click()
    await page.getByText('••••••••', { exact: true }).waitFor()
  })

  it('goes on by itself after the connection was lost, with what happened meanwhile', async () => {
    await using world = await World.start()
    await using proxy = await CuttableProxy.listen()
    await using opened = await openPage(browser, world.pageUrl, { proxy: { server: proxy.url } })
    const { page } = opened
    await world.subscribe('alice')
    await option(page, /alice #1/).waitFor()
    proxy.cut()
    await page.getByText('Not connected', { exact: true }).waitFor()
    await world.notify('alice')
    await world.subscribe('bob')
    proxy.mend()
    await option(page, /empathyCueOpened #1/).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await option(page, /bob #2/).waitFor()
    expect(await timeLine(page).getByRole('option').count()).toBe(4)
    expect(proxy.lastEventIds).toHaveLength(1)
  })

  it('can be used by the keyboard alone', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    await world.notify('alice')
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    const focused = () => page.evaluate('document.activeElement.id')
    const tabTo = async (id: string) => {
      for (let i = 0; i < 40 && (await focused()) !== id; i++) await page.keyboard.press('Tab')
      expect(await focused()).toBe(id)
    }
    await tabTo('time-line-list')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await expect.poll(focused).toBe('details-heading')
    expect(await page.locator('#details-heading').textContent()).toBe('empathyCueOpened')
    await page.keyboard.press('Escape')
    await expect.poll(focused).toBe('time-line-list')
    await tabTo('tab-details')
    await page.keyboard.press('Home')
    await expect.poll(focused).toBe('tab-send')
    await tabTo('send-user')
    await page.keyboard.type('alice')
    await page.keyboard.press('Enter')
    await page.locator('.results').getByText('204').waitFor()
  })

  it.each(['light', 'dark'] as const)('has no violation that axe finds, in %s', async (colorScheme) => {
    await using world = await World.start()
    const found: string[] = []
    const check = async (page: Page, state: string) => {
      const { violations } = await new AxeBuilder({ page }).analyze()
      found.push(...violations.map(({ id, nodes }) => `${state}: ${id} at ${nodes[0]?.html}`))
    }
    await using opened = await openPage(browser, world.pageUrl, { colorScheme, reducedMotion: 'reduce' })
    const { page } = opened
    await check(page, 'empty')
    await world.subscribe('alice', { token: 'secret' })
    world.answers.push(500, 500)
    await world.notify('alice', 2)
    world.emulator.injectFault('callback', { status: 503 }, { subscriptionId: 1 })
    await option(page, /empathyCueOpened/)
      .first()
      .click()
    await check(page, 'details')
    await page.getByRole('tab', { name: /Faults/ }).click()
    await check(page, 'faults')
    await world.notify('alice')
    await option(page, /Subscription #1 ended/).click()
    await choose(page, /^Ended 1$/)
    await check(page, 'ended')
    await page.setViewportSize({ width: 360, height: 700 })
    await page.getByRole('tab', { name: 'Time line' }).click()
    await check(page, 'narrow')
    expect(found).toEqual([])
  })

  it('needs no scrolling sideways at 360 pixels', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    await world.notify('alice')
    await using opened = await openPage(browser, world.pageUrl, { viewport: { width: 360, height: 700 } })
    const { page } = opened
    for (const tab of ['Time line', 'Subscriptions', 'Send', 'Faults', 'Details']) {
      await page.getByRole('tab', { name: tab }).click()
      await page.getByRole('tab', { name: tab, selected: true }).waitFor()
      const { scroll, client } = await page.evaluate<{ scroll: number; client: number }>(
        '({ scroll: document.documentElement.scrollWidth, client: document.documentElement.clientWidth })',
      )
      expect({ tab, scroll }).toEqual({ tab, scroll: client })
    }
  })

  it('brings the tab that was opened by a click elsewhere into sight, at 360 pixels', async () => {
    await using world = await World.start()
    await world.subscribe('alice')
    await using opened = await openPage(browser, world.pageUrl, { viewport: { width: 360, height: 700 } })
    const { page } = opened
    // A mark at the edge says that there are more tabs.
    await page.locator('.more-tabs').waitFor()
    await option(page, /create/).click()
    const box = await page.getByRole('tab', { name: 'Details', selected: true }).boundingBox()
    expect((box?.x ?? 360) + (box?.width ?? 0)).toBeLessThanOrEqual(360)
    await expect.poll(() => page.locator('.more-tabs').count()).toBe(0)
  })

  it('renders of 10,000 subscriptions only what is in sight, and finds one among them', async () => {
    await using world = await World.start()
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
    await using opened = await openPage(browser, world.pageUrl)
    const { page } = opened
    const nodes = () => page.locator('*').count()
    await page.getByText('Active 10,000').waitFor()
    expect(await nodes()).toBeLessThan(1_500)
    await subscriptions(page).evaluate((list) => list.scrollTo({ top: list.scrollHeight }))
    await option(page, /agent-0 #1/).waitFor()
    expect(await nodes()).toBeLessThan(1_500)
    await page.locator('#subscriptions-filter').fill('agent-4321')
    await option(page, /agent-4321/).waitFor()
    await expect.poll(() => subscriptions(page).getByRole('option').count()).toBe(1)
  })

  it('stays usable while thousands of requests come in: few rows are drawn, and a click opens one', async () => {
    await using world = await World.start()
    await using opened = await openPage(browser, world.pageUrl)
    const { page, problems } = opened
    const { emulator } = world
    const rows = timeLine(page).getByRole('option')
    const send = async (from: number, to: number) => {
      for (let i = from; i < to; i++) {
        await emulator.fetch(new Request(`${emulator.baseUrl}/number-${i}`))
        // As fast as the page could ever see them, and still one after the other.
        if (i % 10 === 0) await sleep(1)
      }
    }
    await send(0, 100)
    await rows.first().waitFor()
    const flood = send(100, 3_000)
    const box = await timeLine(page).boundingBox()
    if (box === null) throw new Error('the time line is not in sight')
    await page.mouse.click(box.x + box.width / 2, box.y + 100)
    await page.locator('#details-heading').waitFor()
    await flood

    await option(page, /GET \/number-2999 /).waitFor()
    // The page says how many it has; it draws those that are in sight and a few around them.
    expect(await rows.first().getAttribute('aria-setsize')).toBe('1000')
    const inSight = box.height / 54
    expect(await rows.count()).toBeLessThan(3 * inSight)
    await option(page, /GET \/number-2999 /).click()
    await page.getByRole('tabpanel', { name: 'Details' }).getByText('/number-2999').waitFor()
    expect(problems).toEqual([])
  })

  it.each([1600, 1300, 1000, 860])('shows filter and tabs whole at %i pixels', async (width) => {
    await using world = await World.start()
    await world.subscribe('alice')
    world.emulator.injectFault('callback', { status: 503 }, { times: 3 })
    await using opened = await openPage(browser, world.pageUrl, { viewport: { width, height: 800 } })
    const { page } = opened
    const filter = page.locator('#time-line-filter')
    // The words in the field say what it filters by.
    expect(await filter.evaluate((input: Measured) => input.clientWidth)).toBeGreaterThan(300)
    const tabs = page.getByRole('tablist')
    const { clientWidth, scrollWidth } = await tabs.evaluate(({ clientWidth, scrollWidth }: Measured) => ({
      clientWidth,
      scrollWidth,
    }))
    expect(scrollWidth).toBe(clientWidth)
  })
})

/** Of an element in the browser, whose types are not known here. */
interface Measured {
  readonly clientWidth: number
  readonly scrollWidth: number
}
