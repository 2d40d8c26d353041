/** The emulator's page in a real browser: what a person does with it. test/emulator/page/view has what it shows. */
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
const outcome = (page: Page, text: string) => page.locator('#outcome').getByText(text).waitFor()
const clipboard = { permissions: ['clipboard-read', 'clipboard-write'] }
const copiedIn = (page: Page) => page.evaluate<string>('navigator.clipboard.readText()')

describe('the page', () => {
  test('shows a subscription as it is made, and a notification sent by the form, whose text stays', async (world) => {
    const page = await world.open(browser)
    await page.getByText('Nothing has happened yet').waitFor()
    await world.subscribe('alice')
    await row(page, /alice #1/).waitFor()
    await page.getByRole('link', { name: 'Send', exact: true }).click()
    await page.getByLabel('Payload').fill('{"callId":"typed"')
    await click(page, 'Send')
    await outcome(page, 'This notification cannot be delivered')
    await world.subscribe('bob')
    await row(page, /bob #2/).waitFor()
    await page.getByLabel('Payload').press('End')
    await page.keyboard.type('}')
    await click(page, 'Send')
    await outcome(page, 'Answered 204')
    await row(page, /lowEnergyAgentOpened #1.*204/s).click()
    await details(page).getByText('"typed"').waitFor()
    expect(world.problems.filter((problem) => !problem.includes('400'))).toEqual([])
    expect([...world.origins]).toEqual([new URL(world.pageUrl).origin])
  })

  test('sends a callback again, plans faults, and ends a subscription', async (world) => {
    await world.subscribe('alice')
    await world.notify('alice')
    const page = await world.open(browser, {}, '?open=entry-3')
    await click(page, 'Resend')
    await outcome(page, 'Answered 204')
    expect(world.received).toHaveLength(2)
    await page.getByRole('link', { name: 'Subscription #1' }).click()
    await click(page, 'Fail its next callback')
    await page.getByRole('link', { name: 'Faults 1' }).click()
    await page.getByText('The next callback of subscription 1: status 503').waitFor()
    await page.getByLabel('What fails').selectOption('Create requests')
    await page.getByLabel('How often').selectOption('until cleared')
    await click(page, 'Plan it')
    await page.getByText('Every create request: status 503').waitFor()
    await click(page, 'Clear all')
    await page.getByText(/^None\./).waitFor()
    await click(page, 'Revoke tokens')
    await row(page, /Access tokens revoked/).waitFor()
    await row(page, /alice #1/).click()
    await click(page, 'End it')
    await details(page).getByText('It ended because the page or the program ended it.').waitFor()
    expect(world.emulator.subscriptions).toEqual([])
  })

  test('hides secrets until the box is checked, and copies them', async (world) => {
    await world.subscribe('alice', { token: 'a-secret-of-the-receiver' })
    await world.notify('alice')
    const page = await world.open(browser, clipboard, '?open=entry-3')
    const secret = details(page).getByText('a-secret-of-the-receiver')
    const width = async () => (await secret.boundingBox())?.width ?? 0
    const hidden = await width()
    await page.getByLabel('Show secrets').check()
    await expect.poll(width).toBeGreaterThan(hidden * 1.5)
    await page.getByLabel('Show secrets').uncheck()
    await expect.poll(width).toBe(hidden)
    await click(page, 'Copy as curl')
    await outcome(page, 'Copied')
    expect(await copiedIn(page)).toContain("--header 'token: a-secret-of-the-receiver'")
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
    await page.getByRole('searchbox').pressSequentially('bob')
    await expect.poll(() => timeLine(page).locator('a.row').count()).toBe(1)
    await world.subscribe('bob-2')
    await expect.poll(() => timeLine(page).locator('a.row').count()).toBe(2)
    expect(await page.getByRole('searchbox').inputValue()).toBe('bob')
  })

  test('says when the emulator is gone, and continues after a lost connection', async (world) => {
    const { port } = new URL(world.pageUrl)
    await using wire = await Relay.start({ port: Number(port) })
    await using opened = await openPage(browser, world.pageUrl.replace(port, String(wire.port)))
    const { page } = opened
    wire.cut()
    await page.getByText('Not connected', { exact: true }).waitFor()
    await world.subscribe('alice')
    wire.mend()
    await row(page, /alice #1/).waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    await world.emulator.close()
    await page.getByText('Not connected', { exact: true }).waitFor()
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
    'is accessible in %s, and never wider than the window',
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
        for (const open of ['', 'entry-1', 'entry-3', 'subscription-1', 'send', 'faults', 'connect']) {
          await page.goto(`${world.pageUrl}?open=${open}`)
          expect(
            await page.evaluate('document.documentElement.scrollWidth - innerWidth'),
          ).toBeLessThanOrEqual(0)
          if (width !== 1440) continue
          const { violations } = await new AxeBuilder({ page }).analyze()
          expect([open, violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`)]).toEqual([open, []])
        }
      }
    },
  )
})
