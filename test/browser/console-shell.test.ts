/** Tests the console's sign-in, navigation and theme. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { behindProxy } from '../support/console.ts'
import { makeSignInUrl, openConsole, openWindow } from '../support/console-ui.ts'
import { saveScreenshot } from '../support/screenshots.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const pages = [
  ['Agents', '/agents'],
  ['Visitors', '/visitors'],
  ['Keys', '/keys'],
  ['Webhooks', '/webhooks'],
  ['Usage', '/usage'],
  ['Uploads', '/uploads'],
  ['Files', '/files'],
  ['Providers', '/providers'],
  ['Prices', '/prices'],
  ['Administration', '/admin'],
] as const

describe('sign-in', () => {
  test('accepts a link only once and removes its secret from the URL', async () => {
    const app = await startApp()
    const { page, complaints } = await openWindow(app, browser)
    const url = await makeSignInUrl(app)
    const addresses: string[] = []
    page.on('framenavigated', (frame) => addresses.push(frame.url()))
    await page.goto(url)
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
    expect(addresses.slice(1).filter((address) => address.includes('#'))).toEqual([])
    expect(page.url()).toBe(`${app.url}/console/agents`)
    await page.goBack().catch(() => null)
    expect(page.url()).not.toContain('#')
    expect(complaints).toEqual([])

    const second = await openWindow(app, browser)
    await second.page.goto(url)
    await second.page.getByText('Sign-in failed').waitFor()
    expect(await second.page.getByText('was already used').isVisible()).toBe(true)
    await saveScreenshot(second.page, 'sign-in-refused-light')
  })

  test.each(['light', 'dark'] as const)(
    'shows instructions to a signed-out user in the %s theme',
    async (colorScheme) => {
      const app = await startApp()
      const { page } = await openWindow(app, browser, { colorScheme })
      await page.goto(`${app.url}/console/keys`)
      await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
      expect(await page.title()).toBe('Sign in · Parley')
      await saveScreenshot(page, `sign-in-${colorScheme}`)
      expect(await listAxeFaults(page)).toEqual([])
    },
  )

  test('is automatic behind a trusted proxy, but not if an untrusted address sends the identity headers', async () => {
    const headers = { 'X-Email': 'ada@example.org', 'X-User-First-Name': 'Ada' }
    const trusted = await startApp(behindProxy)
    const inside = await openWindow(trusted, browser, { headers })
    await inside.page.goto(`${trusted.url}/console`)
    await inside.page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
    expect(await inside.page.getByRole('link', { name: 'Administration' }).count()).toBe(0)
    expect(inside.complaints).toEqual([])

    const strict = await startApp({ ...behindProxy, PARLEY_TRUSTED_PROXIES: '10.9.8.7' })
    const outside = await openWindow(strict, browser, { headers })
    await outside.page.goto(`${strict.url}/console`)
    await outside.page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
  })

  test('is required again after the user signs out', async () => {
    const app = await startApp()
    const { page } = await openConsole(app, browser)
    await page.getByRole('button', { name: 'first' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
    await page.goto(`${app.url}/console/agents`)
    await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
  })
})

describe('the console pages', () => {
  test.each(['light', 'dark'] as const)(
    'are reachable, titled and accessible in the %s theme',
    async (colorScheme) => {
      const app = await startApp()
      const { page, complaints } = await openConsole(app, browser, '/agents', { colorScheme })
      for (const [name, path] of pages) {
        await page.getByRole('navigation').getByRole('link', { name }).click()
        await page.getByRole('heading', { name, level: 1 }).waitFor()
        expect(page.url()).toBe(`${app.url}/console${path}`)
        expect(await page.title()).toBe(`${name} · Parley`)
        expect(await listAxeFaults(page)).toEqual([])
      }
      expect(complaints).toEqual([])
    },
  )

  test('fit on a phone screen and hide the navigation behind a button', async () => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/keys', { width: 390, height: 844 })
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
    await page.getByRole('button', { name: 'Open menu' }).click()
    await page.getByRole('dialog').getByRole('link', { name: 'Usage' }).waitFor()
    await saveScreenshot(page, 'menu-phone')
    expect(await listAxeFaults(page)).toEqual([])
    await page.getByRole('dialog').getByRole('link', { name: 'Usage' }).click()
    await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor()
    expect(complaints).toEqual([])
  })

  test('include an error page for unknown URLs', async () => {
    const app = await startApp()
    const { page } = await openConsole(app, browser, '/nothing/here')
    await page.getByText('This page does not exist').waitFor()
    expect(await listAxeFaults(page)).toEqual([])
  })
})

test('the selected theme is applied before the main script has loaded', async () => {
  const app = await startApp()
  const { page } = await openConsole(app, browser)
  await page.getByRole('button', { name: 'Theme: System' }).click()
  await page.getByRole('menuitem', { name: 'Dark' }).click()
  const scheme = () => page.evaluate(() => document.documentElement.dataset.mantineColorScheme)
  expect(await scheme()).toBe('dark')
  await page.route('**/main-*.js', () => {})
  await page.goto(`${app.url}/console/keys`, { waitUntil: 'commit' })
  await page.waitForFunction(() => document.documentElement.dataset.mantineColorScheme !== undefined)
  expect(await scheme()).toBe('dark')
})
