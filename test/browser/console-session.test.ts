/** Tests that an expired console session does not lose the user's work. */
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { behindProxy, consoleHeaders } from '../support/console.ts'
import { askInPlayground, playgroundFrame } from '../support/console-parts.ts'
import { makeSignInUrl, openConsole, openWindow } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const prompt = (page: Page) => page.getByRole('dialog', { name: 'You are signed out' })
const gone = { state: 'detached' } as const

/** Ends the browser's session without signing out in the page. */
async function endSession(app: TestApp, context: BrowserContext): Promise<void> {
  const answer = await context.request.post(`${app.url}/v1/manager/sign-out`, {
    headers: consoleHeaders,
    data: {},
  })
  expect(answer.status()).toBe(200)
}

/** Signs in again in another tab of the same browser. */
async function signInElsewhere(app: TestApp, context: BrowserContext): Promise<void> {
  const tab = await context.newPage()
  await tab.goto(await makeSignInUrl(app))
  await tab.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
}

const unexpected = (complaints: readonly string[]) => complaints.filter((line) => !line.includes('401'))

describe('the console, once the session has ended,', () => {
  test("keeps an agent's draft until another tab signs in again", async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const { page, context, complaints } = await openConsole(app, browser, `/agents/${agent_id}`)
    const name = page.getByRole('textbox', { name: 'Name', exact: true })
    await name.fill('Ada')
    const text = page.getByRole('textbox', { name: 'Definition as YAML' })
    await text.click()
    await page.keyboard.press('Control+End')
    await page.keyboard.type('# kept')
    const check = page.waitForResponse(/agents\.check/)
    await page.keyboard.type('\n')
    await check
    await endSession(app, context)
    await page.getByRole('button', { name: 'Save' }).click()
    await prompt(page).waitFor()
    await expectView(page, 'signed-out')
    await prompt(page).getByRole('button', { name: 'Try again' }).click()
    await prompt(page).getByRole('alert').waitFor()

    await signInElsewhere(app, context)
    await prompt(page).waitFor(gone)
    expect(await name.inputValue()).toBe('Ada')
    await text.getByText('# kept').waitFor()
    await page.getByText('Changed since version 1').waitFor()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved as version 2').waitFor()
    const { body } = await app.call('GET', `/v1/agents/${agent_id}`)
    expect(body.yaml).toContain('name: Ada\n')
    expect(body.yaml).toContain('# kept\n')
    expect(unexpected(complaints)).toEqual([])
  })

  test('keeps the model policy until the user signs in again with a pasted link', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const { page, context } = await openConsole(app, browser, `/agents/${agent_id}/models`)
    await page.getByLabel('Daily budget').fill('1234')
    await endSession(app, context)
    await page.getByRole('button', { name: 'Save' }).click()
    const link = prompt(page).getByLabel('Sign-in link')
    const spent = await makeSignInUrl(app)
    const other = await openWindow(app, browser)
    await other.page.goto(spent)
    await other.page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor()
    await link.fill(spent)
    await prompt(page).getByRole('button', { name: 'Sign in' }).click()
    await prompt(page).getByText('was already used').waitFor()
    await link.fill(await makeSignInUrl(app))
    await prompt(page).getByRole('button', { name: 'Sign in' }).click()
    await prompt(page).waitFor(gone)
    expect(await page.getByLabel('Daily budget').inputValue()).toBe('1 234')
    await page.getByRole('button', { name: 'Save' }).click()
    await expect
      .poll(async () => (await app.call('GET', `/v1/agents/${agent_id}/model-policy`)).body.budget.day)
      .toBe(1234)
  })

  test('keeps an open dialog with the text typed into it', async () => {
    const app = await startApp()
    const { page, context } = await openConsole(app, browser, '/keys')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByLabel('Name').fill('Web shop')
    await endSession(app, context)
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await prompt(page).waitFor()
    await page.keyboard.press('Escape')
    await prompt(page).waitFor(gone)
    expect(await page.getByLabel('Name').inputValue()).toBe('Web shop')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await prompt(page).waitFor()
    await signInElsewhere(app, context)
    await prompt(page).waitFor(gone)
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('button', { name: 'I have copied it' }).click()
    await page.getByRole('cell', { name: 'Web shop', exact: true }).waitFor()
  })

  test('keeps the message typed in the playground', async () => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const { page, context } = await openConsole(app, browser, `/agents/${agent_id}?try=true`)
    await playgroundFrame(page).getByRole('textbox').waitFor()
    await endSession(app, context)
    await askInPlayground(page, 'Are you there?')
    await prompt(page).waitFor()
    await playgroundFrame(page).locator('.bubble', { hasText: 'Are you there?' }).waitFor()
  })

  test('asks the user to sign in through the authenticating proxy, if there is one', async () => {
    const app = await startApp(behindProxy)
    const { page, context } = await openWindow(app, browser, { headers: { 'X-Email': 'ada@example.org' } })
    await page.goto(`${app.url}/console/keys`)
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByLabel('Name').fill('Web shop')
    // Without a session, the proxy responds instead of forwarding requests.
    const refuse = { status: 401, contentType: 'text/html', body: '<h1>Sign in</h1>' }
    await context.route('**/trpc/**', (route) => route.fulfill(refuse))
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await prompt(page).getByText('Sign in again in another tab').waitFor()
    expect(await prompt(page).getByRole('textbox').count()).toBe(0)
    await context.unroute('**/trpc/**')
    await prompt(page).getByRole('button', { name: 'Try again' }).click()
    await prompt(page).waitFor(gone)
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('button', { name: 'I have copied it' }).waitFor()
  })
})

test('a signed-out user sees the requested page after signing in on another tab', async () => {
  const app = await startApp()
  const { page, context } = await openWindow(app, browser)
  await page.goto(`${app.url}/console/files`)
  await page.getByRole('heading', { name: 'Sign in to Parley' }).waitFor()
  await signInElsewhere(app, context)
  await page.getByText('No files yet').waitFor()
  expect(await prompt(page).count()).toBe(0)
})

describe('an unsaved change', () => {
  test.each([
    [
      'an agent',
      '',
      async (page: Page) => page.getByRole('textbox', { name: 'Name', exact: true }).fill('X'),
    ],
    ['a model policy', '/models', async (page: Page) => page.getByLabel('Answer limit').fill('7')],
  ])('to %s requires confirmation before navigation or a reload', async (_, path, type) => {
    const app = await startApp()
    const { agent_id } = await app.createAgent()
    const { page } = await openConsole(app, browser, `/agents/${agent_id}${path}`)
    await type(page)
    const files = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Files' })
    await files.click()
    await page.getByRole('dialog', { name: 'Leave without saving?' }).waitFor()
    await page.getByRole('button', { name: 'Stay' }).click()
    const asked = new Promise<string>((resolve) => {
      page.once('dialog', async (dialog) => {
        await dialog.dismiss()
        resolve(dialog.type())
      })
    })
    await page.evaluate(() => window.location.reload())
    expect(await asked).toBe('beforeunload')
    await files.click()
    await page.getByRole('button', { name: 'Leave', exact: true }).click()
    await page.getByText('No files yet').waitFor()
    const { body } = await app.call('GET', `/v1/agents/${agent_id}`)
    expect(body.version).toBe(1)
  })
})
