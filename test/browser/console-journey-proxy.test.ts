/** Tests the first sign-in through an authenticating proxy, and attempts to bypass the proxy. */
import { randomBytes } from 'node:crypto'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { chatInPlayground, createFromTemplate, openMenuPage, readTable } from '../support/console-parts.ts'
import { type ConsoleOptions, openWindow } from '../support/console-ui.ts'
import { type IdentityProxy, startIdentityProxy } from '../support/identity-proxy.ts'
import { makeFolder, startServer } from '../support/process.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

/** The proxy's address; it differs from the browser's, which is 127.0.0.1. */
const PROXY = '127.0.0.2'
const secret = randomBytes(24).toString('base64')
const ada = { 'X-Email': 'ada@example.org', 'X-User-First-Name': 'Ada', 'X-Proxy-Secret': secret }
const eve = { 'X-Email': 'eve@example.org', 'X-User-First-Name': 'Eve' }
const eveWithSecret = { ...eve, 'X-Proxy-Secret': secret }

/** Starts a server behind a proxy that authenticates every request as Ada, the administrator. */
async function startBehindProxy() {
  const proxy = await startIdentityProxy({ headers: ada, from: PROXY })
  const env = {
    PARLEY_TRUST_FORWARDED_AUTH: 'true',
    PARLEY_TRUSTED_PROXIES: PROXY,
    PARLEY_PROXY_SECRET: secret,
    PARLEY_PUBLIC_URL: proxy.url,
    PARLEY_ADMIN_EMAILS: 'ada@example.org',
  }
  const server = await startServer({ folder: await makeFolder(), env })
  proxy.forwardTo(server.url)
  return { proxy, server }
}

/** Lists the email addresses of all console users. */
async function listUsers({ url }: IdentityProxy): Promise<string[]> {
  const { data } = await (await fetch(`${url}/v1/manager/admin/users`)).json()
  return data.map(({ email }: { email: string }) => email)
}

describe('a user behind a trusted proxy', () => {
  test('is signed in automatically and can create an agent, chat with it and see the usage', async () => {
    const { proxy, server } = await startBehindProxy()
    expect(server.stdout).not.toContain('sign-in')
    // The proxy replaces the identity headers that the browser sends.
    const { page, complaints } = await openWindow(proxy, browser, { headers: eve })
    await page.goto(`${proxy.url}/console`)
    await page.getByText('No agents yet').waitFor()
    await page.getByRole('button', { name: 'ada@example.org' }).click()
    await page.getByText('Active key of Ada').waitFor()
    expect(await page.getByRole('menuitem', { name: 'Sign out' }).count()).toBe(0)
    await page.keyboard.press('Escape')
    await createFromTemplate(page, 'Helpdesk')
    await chatInPlayground(page, 'Hello through the proxy')
    await page.getByRole('link', { name: 'Embed', exact: true }).click()
    await page.getByText(`src="${proxy.url}/embed/parley.js?key=agnt_key-`).waitFor()
    await openMenuPage(page, 'Usage')
    expect((await readTable(page, 'Usage by day'))[0]?.slice(1, 3)).toEqual(['1', '0'])
    await openMenuPage(page, 'Administration')
    await page.getByRole('cell', { name: 'ada@example.org' }).first().waitFor()
    expect(await listUsers(proxy)).toEqual(['ada@example.org'])
    expect(complaints).toEqual([])
  })
})

describe('forged identity headers are ignored', () => {
  async function expectSignedOut(url: string, options: ConsoleOptions): Promise<void> {
    const { page } = await openWindow({ url }, browser, options)
    for (const path of ['/console', '/console/agents/new', '/console/admin']) {
      await page.goto(url + path)
      await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
    }
    const statuses = await page.evaluate(async () => {
      const headers = { 'Content-Type': 'application/json', 'X-Requested-With': 'parley' }
      const body = JSON.stringify({ yaml: 'name: Forged\ninstructions: Help.\n' })
      const asked = await fetch('/v1/manager/me')
      const made = await fetch('/v1/manager/agents', { method: 'POST', headers, body })
      return [asked.status, made.status]
    })
    expect(statuses).toEqual([401, 401])
  }

  test("when a browser sends them, even with the proxy's secret", async () => {
    const { proxy, server } = await startBehindProxy()
    await expectSignedOut(server.url, { headers: eveWithSecret })
    await expectSignedOut(server.url, { headers: { ...eveWithSecret, 'X-Forwarded-For': PROXY } })
    expect(await listUsers(proxy)).toEqual(['ada@example.org'])
  })

  test("when a client at the proxy's address sends them without the proxy's secret", async () => {
    const { proxy, server } = await startBehindProxy()
    const neighbour = await startIdentityProxy({ headers: eve, from: PROXY })
    neighbour.forwardTo(server.url)
    await expectSignedOut(neighbour.url, {})
    const stranger = await startIdentityProxy({
      headers: { ...eve, 'X-Proxy-Secret': 'guessed' },
      from: PROXY,
    })
    stranger.forwardTo(server.url)
    await expectSignedOut(stranger.url, {})
    expect(await listUsers(proxy)).toEqual(['ada@example.org'])
  })

  test('when a proxy at another address sends them with the secret', async () => {
    const { proxy, server } = await startBehindProxy()
    const elsewhere = await startIdentityProxy({ headers: eveWithSecret, from: '127.0.0.3' })
    elsewhere.forwardTo(server.url)
    await expectSignedOut(elsewhere.url, {})
    expect(await listUsers(proxy)).toEqual(['ada@example.org'])
  })
})
