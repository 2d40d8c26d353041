/** The emulator's page in a real browser: what a person does with it. test/emulator/page/page has what it shows. */
import { AxeBuilder } from '@axe-core/playwright'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { testWith } from '../../support/test-with.js'
import { Relay } from '../redis/relay.js'
import { launchChromium, openPage, World } from './support.js'

const test = testWith(World.start)

let browser: Browser

beforeAll(async () => {
  browser = await launchChromium()
})

afterAll(() => browser.close())

const timeLine = (page: Page) => page.locator('#time-line')
const details = (page: Page) => page.getByRole('region', { name: 'Details' })
const row = (page: Page, text: RegExp) => page.locator('.list a.row').filter({ hasText: text })
const click = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const follow = (page: Page, name: string) => page.getByRole('link', { name, exact: true }).click()
const outcome = (page: Page, text: string) => page.locator('#outcome').getByText(text).waitFor()
const clipboard = { permissions: ['clipboard-read', 'clipboard-write'] }
const copiedIn = (page: Page) => page.evaluate<string>('navigator.clipboard.readText()')
const views = ['', 'event-1', 'event-3', 'subscriptions', 'subscription-1', 'send', 'faults', 'connect']

describe('a person', () => {
  test('connects: copies the variables and the program, and sees the subscription as it is made', async (world) => {
    const page = await world.open(browser, clipboard)
    await page.getByText('Nothing has happened yet').waitFor()
    await follow(page, 'Connect')
    await details(page).getByRole('link', { name: 'Copy', exact: true }).first().click()
    await outcome(page, 'Copied')
    expect(await copiedIn(page)).toContain(`NOTIFICATION_CLIENT_SECRET=${world.emulator.clientSecret}`)
    await details(page).getByRole('link', { name: 'Copy', exact: true }).last().click()
    await expect.poll(() => copiedIn(page)).toContain('NotificationClient.fromEnv()')
    await world.subscribe('alice')
    await row(page, /alice #1/).waitFor()
    expect(world.problems).toEqual([])
    expect([...world.origins]).toEqual([new URL(world.pageUrl).origin])
  })

  test('sees what went wrong with a callback, resends it, changes it and sends it', async (world) => {
    await world.subscribe('alice')
    world.answers.push({ status: 500, body: '{"error":"no database"}' })
    await world.notify('alice')
    const page = await world.open(browser)
    await follow(page, 'Failures')
    await row(page, /no database/).click()
    await details(page).getByText('no database').first().waitFor()
    await click(page, 'Resend')
    await outcome(page, 'Answered 204')
    expect(world.received[1]).toEqual(world.received[0])
    await follow(page, 'Change and send…')
    await page.getByLabel('Payload').fill('{"callId":"typed"')
    await click(page, 'Send')
    await outcome(page, 'This notification cannot be delivered')
    // What is typed stays while the page changes, and so does the focus.
    await page.getByLabel('Payload').press('End')
    await world.subscribe('bob')
    await row(page, /bob #2/).waitFor()
    await page.keyboard.type('}')
    await click(page, 'Send')
    await outcome(page, 'Answered 204')
    expect(world.received[2]?.text).toContain('"typed"')
    expect(world.problems.filter((problem) => !problem.includes('400'))).toEqual([])
  })

  test('injects a fault and clears it, revokes tokens, and ends a subscription', async (world) => {
    await world.subscribe('alice')
    const page = await world.open(browser, {}, '?open=subscription-1')
    await click(page, 'Fail its next callback')
    await follow(page, 'Faults 1')
    await page.getByText('The next callback of subscription 1: status 503').waitFor()
    await page.getByLabel('What fails').selectOption('create request')
    await page.getByLabel('How often').selectOption('until cleared')
    await click(page, 'Inject')
    await page.getByText('Every create request: status 503').waitFor()
    expect(await page.getByLabel('What fails').inputValue()).toBe('create')
    await click(page, 'Clear all')
    await page.getByText(/^None\./).waitFor()
    await world.subscribe('bob')
    await click(page, 'Revoke tokens')
    await outcome(page, 'Done')
    await row(page, /alice #1/).click()
    await click(page, 'End it')
    await details(page).getByText('It ended because the page or the program ended it.').waitFor()
    // The page follows while it is open, also where a subscription ends elsewhere.
    await row(page, /bob #2/).click()
    await details(page).getByRole('button', { name: 'End it' }).waitFor()
    world.emulator.endSubscription(2)
    await details(page).getByText('It ended because').waitFor()
    await follow(page, 'Ended 2')
    await row(page, /alice #1\s+ended/).waitFor()
  })

  test('shows secrets, hides them, and copies a command that has them', async (world) => {
    await world.subscribe('alice', { token: 'a-secret-of-the-receiver' })
    await world.notify('alice')
    const page = await world.open(browser, clipboard, '?open=event-3')
    const secret = details(page).getByText('a-secret-of-the-receiver')
    expect(await page.content()).not.toContain('a-secret-of-the-receiver')
    await follow(page, 'Show secrets')
    await secret.waitFor()
    await follow(page, 'Hide secrets')
    await secret.waitFor({ state: 'detached' })
    await follow(page, 'Copy as curl')
    await outcome(page, 'Copied')
    expect(await copiedIn(page)).toContain("--header 'token: a-secret-of-the-receiver'")
    expect(await page.content()).not.toContain('a-secret-of-the-receiver')
  })

  test('has an address for everything, filters as one types, and goes back', async (world) => {
    await world.subscribe('alice')
    await world.subscribe('bob')
    await world.notify('alice')
    const page = await world.open(browser)
    await row(page, /empathyCueOpened/).click()
    await details(page).getByRole('heading', { name: 'empathyCueOpened' }).waitFor()
    await page.reload()
    await details(page).getByRole('link', { name: 'Subscription #1' }).click()
    await details(page).getByRole('heading', { name: 'Subscription #1' }).waitFor()
    await page.goBack()
    await details(page).getByRole('heading', { name: 'empathyCueOpened' }).waitFor()
    await page.keyboard.press('Escape')
    await details(page).waitFor({ state: 'hidden' })
    const box = page.getByRole('searchbox')
    await box.pressSequentially('bob')
    await expect.poll(() => timeLine(page).locator('a.row').count()).toBe(1)
    await world.subscribe('bob-2')
    await expect.poll(() => timeLine(page).locator('a.row').count()).toBe(2)
    expect(await box.inputValue()).toBe('bob')
    await row(page, /bob #2/)
      .first()
      .click()
    await follow(page, 'Show only its events')
    await expect.poll(() => box.inputValue()).toBe('#2')
    await page.goBack()
    await expect.poll(() => box.inputValue()).toBe('bob')
  })

  test('without JavaScript still reads, filters and opens', async (world) => {
    await world.subscribe('alice', { token: 'hush' })
    await world.subscribe('bob')
    await using opened = await openPage(browser, world.pageUrl, { javaScriptEnabled: false })
    const { page } = opened
    await page.getByRole('searchbox').fill('alice')
    await page.getByRole('searchbox').press('Enter')
    await row(page, /create #1/).click()
    await details(page).getByText('token').waitFor()
    expect(await row(page, /bob/).count()).toBe(0)
  })
})

describe('the page', () => {
  test('says when the emulator is gone, and continues after a lost connection', async (world) => {
    const { port } = new URL(world.pageUrl)
    await using wire = await Relay.start({ port: Number(port) })
    await using opened = await openPage(browser, world.pageUrl.replace(port, String(wire.port)))
    const { page } = opened
    await page.getByText('Live', { exact: true }).waitFor()
    wire.cut()
    await page.getByText('Not connected', { exact: true }).waitFor()
    await world.subscribe('alice')
    wire.mend()
    await row(page, /alice #1/).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await world.emulator.close()
    await page.getByText('Not connected', { exact: true }).waitFor()
  })

  test('asks for nothing while it is hidden, and follows when a person looks again', async (world) => {
    const page = await world.open(browser)
    await page.getByText('Live', { exact: true }).waitFor()
    const hide = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })`)
    await hide(true)
    const requests: string[] = []
    await page.waitForTimeout(600)
    page.on('request', (request) => requests.push(request.url()))
    await world.subscribe('alice')
    await page.waitForTimeout(900)
    expect(requests).toEqual([])
    await hide(false)
    await row(page, /alice #1/).waitFor()
  })

  test('keeps what a person looks at in its place while requests arrive', async (world) => {
    const page = await world.open(browser)
    const { emulator } = world
    const send = async (from: number, to: number) => {
      for (let i = from; i < to; i++) await emulator.fetch(new Request(`${emulator.baseUrl}/number-${i}`))
    }
    await send(0, 100)
    await row(page, /number-99/).waitFor()
    await timeLine(page).evaluate((list) => list.scrollTo({ top: 2_000 }))
    const topOf = async () => Math.round((await row(page, /number-50 /).boundingBox())?.y ?? 0)
    const before = await topOf()
    await send(100, 120)
    await row(page, /number-119/).waitFor({ state: 'attached' })
    await expect.poll(async () => Math.abs((await topOf()) - before)).toBeLessThan(3)
  })

  test.for(['light', 'dark'] as const)(
    'is accessible in %s, and never larger than the window',
    async (world, colorScheme) => {
      await world.subscribe('alice', { token: 'hush' })
      world.answers.push({ status: 401, body: '{"error":"wrong token"}' })
      await world.notify('alice')
      for (const width of [1440, 900, 390]) {
        await using opened = await openPage(browser, world.pageUrl, {
          colorScheme,
          viewport: { width, height: 800 },
        })
        const { page } = opened
        for (const open of views) {
          await page.goto(`${world.pageUrl}?open=${open}`)
          const fits = await page.evaluate(
            'document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight',
          )
          expect([open, fits]).toEqual([open, true])
          if (width === 900) continue
          const { violations } = await new AxeBuilder({ page }).analyze()
          expect([open, violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`)]).toEqual([open, []])
        }
      }
    },
  )
})
