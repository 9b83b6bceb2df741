/** Tests creating, using, rotating, revoking and claiming keys in the console. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { behindProxy, readMe } from '../support/console.ts'
import { readKey } from '../support/console-parts.ts'
import { openConsole, openWindow } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { uploadWhole } from '../support/uploads.ts'
import { sendChat } from '../support/usage.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const works = async (app: TestApp, key: string) =>
  (await app.call('GET', '/v1/keys/validate', { key })).status === 200

async function openActions(page: Page, name: string, action: string): Promise<void> {
  await page.getByRole('button', { name: `Actions for ${name}` }).click()
  await page.getByRole('menuitem', { name: action }).click()
}

describe('a parent key in the console', () => {
  test('can be created, used, rotated twice and revoked, and is shown only once', async () => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/keys')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByLabel('Name').fill('Web shop')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    const first = await readKey(page)
    expect(first).toMatch(/^svc_/)
    expect(await works(app, first)).toBe(true)
    await expectView(page, 'keys-created')
    await page.getByRole('button', { name: 'I have copied it' }).click()
    await page.getByRole('cell', { name: 'Web shop', exact: true }).waitFor()
    expect(await page.content()).not.toContain(first)

    await openActions(page, 'Web shop', 'Rotate…')
    await page.getByRole('button', { name: 'Rotate key' }).click()
    const second = await readKey(page)
    expect(await page.getByText('The previous key works until').isVisible()).toBe(true)
    expect([await works(app, first), await works(app, second)]).toEqual([true, true])
    await page.getByRole('button', { name: 'I have copied it' }).click()

    await openActions(page, 'Web shop', 'Rotate…')
    await page.getByLabel('Current key').selectOption('Stops working immediately')
    await expectView(page, 'keys-rotate')
    await page.getByRole('button', { name: 'Rotate key' }).click()
    const third = await readKey(page)
    await page.getByText('The previous key has stopped working.').waitFor()
    expect([await works(app, second), await works(app, third)]).toEqual([false, true])
    await page.getByRole('button', { name: 'I have copied it' }).click()

    await openActions(page, 'Web shop', 'Revoke…')
    const revoke = page.getByRole('button', { name: 'Revoke key' })
    await page.getByRole('textbox', { name: 'Type Web shop to confirm' }).fill('web shop')
    expect(await revoke.isDisabled()).toBe(true)
    await page.getByRole('textbox', { name: 'Type Web shop to confirm' }).fill('Web shop')
    await revoke.click()
    await page.getByRole('cell', { name: 'Web shop', exact: true }).waitFor({ state: 'detached' })
    expect(await works(app, third)).toBe(false)
    expect(complaints).toEqual([])
  })

  test('can be made active, and the console then lists only the agent keys of that parent key', async () => {
    const app = await startApp()
    await app.createAgent()
    const { page } = await openConsole(app, browser, '/keys?tab=agent')
    await page.getByRole('cell', { name: 'Greeter', exact: true }).waitFor()
    await page.getByRole('tab', { name: 'Parent keys' }).click()
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByLabel('Name').fill('Second')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('button', { name: 'I have copied it' }).click()
    await openActions(page, 'Second', 'Make active')
    await page.getByRole('row', { name: /Second Active/ }).waitFor()
    await expectView(page, 'keys')
    await page.getByRole('tab', { name: 'Agent keys' }).click()
    await page.getByText('No agent keys').waitFor()
    expect(page.url()).toContain('tab=agent')
  })

  test('can be claimed after the console lists the data that will move', async () => {
    const app = await startApp(behindProxy)
    const email = 'ada@example.org'
    const { page, complaints } = await openWindow(app, browser, { headers: { 'X-Email': email } })
    await page.goto(`${app.url}/console/keys`)
    await page.getByRole('cell', { name: /Automatic/ }).waitFor()
    const headers = { 'X-Email': email, 'X-Requested-With': 'test', 'Sec-Fetch-Site': 'same-origin' }
    const body = { yaml: 'name: Mine\ninstructions: Help.\n' }
    await page.evaluate(
      async ([url, headers, body]) => {
        const init = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body }
        const answer = await fetch(url, init)
        if (!answer.ok) throw new Error(await answer.text())
      },
      ['/v1/manager/agents', headers, JSON.stringify(body)] as const,
    )
    await page.getByRole('button', { name: 'Claim key' }).click()
    await page.getByRole('textbox', { name: 'Parent key', exact: true }).fill('svc_nothing')
    await page.getByRole('button', { name: 'Preview claim' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByRole('textbox', { name: 'Parent key', exact: true }).fill(app.key)
    await page.getByRole('button', { name: 'Preview claim' }).click()
    await page.getByRole('dialog').getByText('1 agent').waitFor()
    await expectView(page, 'keys-claim')
    expect((await readMe(app, email)).keys[0].is_automatic).toBe(true)
    await page.getByRole('dialog').getByRole('button', { name: 'Claim key' }).click()
    await page.getByRole('row', { name: /first Active/ }).waitFor()
    const me = await readMe(app, email)
    expect(me).toMatchObject({ agents: 1, keys: [{ name: 'first', is_active: true, is_automatic: false }] })
    expect(complaints.filter((line) => !line.includes('400'))).toEqual([])
  })
})

test('the console shows an agent key on request and can replace it immediately', async () => {
  const app = await startApp()
  const { agent_key: key } = await app.createAgent()
  await app.createAgent('name: Other\ninstructions: Help.\n')
  const { page, complaints } = await openConsole(app, browser, '/keys?tab=agent')
  await page.getByRole('cell', { name: 'Greeter', exact: true }).waitFor()
  expect(await page.locator('main').innerText()).not.toContain(key)
  await page.getByRole('button', { name: 'Reveal the key for Greeter' }).click()
  await page.getByText(key).waitFor()
  await expectView(page, 'keys-agents')
  await page.getByRole('button', { name: 'Rotate the key for Greeter' }).click()
  await page.getByLabel('Current key').selectOption('Stops working immediately')
  await page.getByRole('button', { name: 'Rotate key' }).click()
  const next = await readKey(page)
  expect([await works(app, key), await works(app, next)]).toEqual([false, true])
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText(next).waitFor()

  await page.getByRole('link', { name: 'Greeter' }).click()
  await page.getByRole('heading', { name: 'Greeter', level: 1 }).waitFor()
  await page.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'View agent key' }).click()
  await page.getByRole('link', { name: 'Show all agent keys' }).waitFor()
  await expect.poll(() => page.getByRole('row').count()).toBe(2)
  await page.getByRole('link', { name: 'Show all agent keys' }).click()
  await page.getByRole('link', { name: 'Other' }).waitFor()
  expect(complaints).toEqual([])
})

test('the claim dialog shows how many uploads and usage records will move to the key', async () => {
  const app = await startApp(behindProxy)
  const { page } = await openWindow(app, browser, { headers: { 'X-Email': 'bob@example.org' } })
  await page.goto(`${app.url}/console/keys`)
  await openActions(page, 'bob@example.org', 'Rotate…')
  await page.getByRole('button', { name: 'Rotate key' }).click()
  const own = await readKey(page)
  await page.getByRole('button', { name: 'I have copied it' }).click()
  await uploadWhole({ ...app, key: own }, Buffer.from('0123456789'))
  await sendChat(app, 'hi', {}, own)
  await sendChat(app, 'hi again', {}, own)
  await page.getByRole('button', { name: 'Claim key' }).click()
  await page.getByRole('textbox', { name: 'Parent key', exact: true }).fill(app.key)
  await page.getByRole('button', { name: 'Preview claim' }).click()
  await page.getByRole('dialog').getByText('1 artifact').waitFor()
  await page.getByRole('dialog').getByText('Usage of 2 calls on 1 day').waitFor()
})
