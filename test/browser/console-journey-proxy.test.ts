/** Tests the first sign-in through an authenticating proxy, and attempts to bypass it, in a real browser. */
import { randomBytes } from 'node:crypto'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { createOfTemplate, goTo, readTable, tryOut } from '../support/console-parts.ts'
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

/** The proxy has its own address, as on a network; the browser is at 127.0.0.1. */
const PROXY = '127.0.0.2'
const secret = randomBytes(24).toString('base64')
const ada = { 'X-Email': 'ada@example.org', 'X-User-First-Name': 'Ada', 'X-Proxy-Secret': secret }
const eve = { 'X-Email': 'eve@example.org', 'X-User-First-Name': 'Eve' }
const eveWithSecret = { ...eve, 'X-Proxy-Secret': secret }

/** Starts a new installation behind a proxy that signs in Ada, the administrator. */
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
  proxy.leadTo(server.url)
  return { proxy, server }
}

/** Lists, as Ada, every user that the server has ever created. */
async function listUsers({ url }: IdentityProxy): Promise<string[]> {
  const { data } = await (await fetch(`${url}/v1/manager/admin/users`)).json()
  return data.map(({ email }: { email: string }) => email)
}

describe('behind a trusted proxy,', () => {
  test('a first-time user is signed in, creates an agent, chats with it and finds the call in the usage', async () => {
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
    await createOfTemplate(page, 'Helpdesk')
    await tryOut(page, 'Hello through the proxy')
    await page.getByRole('link', { name: 'Embed' }).click()
    await page.getByText(`src="${proxy.url}/embed/parley.js"`).waitFor()
    await goTo(page, 'Usage')
    expect((await readTable(page, 'Usage by day'))[0]?.slice(1, 3)).toEqual(['1', '0'])
    await goTo(page, 'Administration')
    await page.getByRole('cell', { name: 'ada@example.org' }).first().waitFor()
    expect(await listUsers(proxy)).toEqual(['ada@example.org'])
    expect(complaints).toEqual([])
  })
})

describe('forged identity headers do not sign in a user', () => {
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

  test('when the browser sends them, even with the secret', async () => {
    const { proxy, server } = await startBehindProxy()
    await expectSignedOut(server.url, { headers: eveWithSecret })
    await expectSignedOut(server.url, { headers: { ...eveWithSecret, 'X-Forwarded-For': PROXY } })
    expect(await listUsers(proxy)).toEqual(['ada@example.org'])
  })

  test('when a client at the proxy’s address sends them without its secret', async () => {
    const { proxy, server } = await startBehindProxy()
    const neighbour = await startIdentityProxy({ headers: eve, from: PROXY })
    neighbour.leadTo(server.url)
    await expectSignedOut(neighbour.url, {})
    const stranger = await startIdentityProxy({
      headers: { ...eve, 'X-Proxy-Secret': 'guessed' },
      from: PROXY,
    })
    stranger.leadTo(server.url)
    await expectSignedOut(stranger.url, {})
    expect(await listUsers(proxy)).toEqual(['ada@example.org'])
  })

  test('when a proxy at another address sends them', async () => {
    const { proxy, server } = await startBehindProxy()
    const elsewhere = await startIdentityProxy({ headers: eveWithSecret, from: '127.0.0.3' })
    elsewhere.leadTo(server.url)
    await expectSignedOut(elsewhere.url, {})
    expect(await listUsers(proxy)).toEqual(['ada@example.org'])
  })
})
