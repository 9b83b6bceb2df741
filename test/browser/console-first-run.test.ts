/**
 * Tests the "Get started" checklist, the notice about the mock model, and how many requests the agent list
 * needs.
 */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { askInPlayground, openMenuPage } from '../support/console-parts.ts'
import { openConsole } from '../support/console-ui.ts'
import { saveScreenshot } from '../support/screenshots.ts'
import { shareUpstream } from '../support/start-upstream.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

const upstream = await shareUpstream()
const withGateway = { PARLEY_BACKEND: 'gateway', PARLEY_GATEWAY_URL: upstream.url }

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

const checklistOf = (page: Page) => page.getByRole('region', { name: 'Get started' })
const mockNotice = (page: Page) => page.getByRole('note', { name: 'Mock model' })
const startLink = (page: Page) => page.getByRole('link', { name: 'Get started' })

describe('the “Get started” checklist', () => {
  test('marks each step as done when the user has completed it, and disappears after the last step', async () => {
    const app = await startApp(withGateway)
    const { page, context, complaints } = await openConsole(app, browser)
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    const checklist = checklistOf(page)
    await checklist.getByText('1 of 4 steps complete').waitFor()
    await checklist.getByRole('heading', { name: 'Connect a model (complete)' }).waitFor()
    await checklist.getByRole('link', { name: 'Create agent' }).click()
    await page.getByRole('link', { name: /Customer support/ }).click()
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('Agent created').waitFor()
    await openMenuPage(page, 'Agents')
    await checklist.getByText('2 of 4 steps complete').waitFor()
    await checklist.getByRole('link', { name: 'Try agent' }).click()
    await askInPlayground(page, 'Hello')
    await page.getByRole('group', { name: 'Answer details' }).waitFor()
    expect(await mockNotice(page).count()).toBe(0)
    await openMenuPage(page, 'Agents')
    await checklist.getByText('3 of 4 steps complete').waitFor()
    await startLink(page).waitFor()
    await checklist.getByRole('link', { name: 'Show embed code' }).click()
    await page.getByRole('button', { name: 'Copy Script' }).click()
    await openMenuPage(page, 'Agents')
    await page.getByRole('textbox', { name: 'Search agents' }).waitFor()
    await startLink(page).waitFor({ state: 'hidden' })
    expect(await checklist.count()).toBe(0)
    expect(complaints).toEqual([])
  })

  test.each([
    ['light', 1440],
    ['dark', 1440],
    ['light', 390],
    ['dark', 390],
  ] as const)('is accessible and fits on the screen (%s, %i px)', async (colorScheme, width) => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/agents', { colorScheme, width })
    await checklistOf(page).getByRole('link', { name: 'Connect model' }).waitFor()
    await saveScreenshot(page, `first-run-${colorScheme}-${width}`)
    expect(await listAxeFaults(page)).toEqual([])
    const { agent_id } = await app.createAgent()
    await page.reload()
    await checklistOf(page).getByRole('link', { name: 'Try the agent' }).waitFor()
    await saveScreenshot(page, `first-run-agent-${colorScheme}-${width}`)
    expect(await listAxeFaults(page)).toEqual([])
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width)
    await page.goto(`${app.url}/console/agents/${agent_id}?view=try&try=true`)
    await mockNotice(page).getByText('built-in mock model').waitFor()
    await saveScreenshot(page, `first-run-try-${colorScheme}-${width}`)
    expect(await listAxeFaults(page)).toEqual([])
    await page.goto(`${app.url}/console/agents/${agent_id}/embed`)
    await mockNotice(page).getByText('built-in mock model').waitFor()
    await saveScreenshot(page, `first-run-embed-${colorScheme}-${width}`)
    expect(await listAxeFaults(page)).toEqual([])
    expect(complaints).toEqual([])
  })

  test('stays hidden after the user hides it, and remains reachable from the sidebar', async () => {
    const app = await startApp()
    const { page } = await openConsole(app, browser)
    await page.getByRole('button', { name: 'Hide checklist' }).click()
    await checklistOf(page).waitFor({ state: 'hidden' })
    await page.reload()
    await page.getByText('No agents yet').waitFor()
    expect(await checklistOf(page).count()).toBe(0)
    await startLink(page).click()
    await page.getByRole('heading', { name: 'Get started', level: 1 }).waitFor()
    await checklistOf(page).getByText('0 of 4 steps complete').waitFor()
    await saveScreenshot(page, 'get-started-light')
    expect(await page.getByRole('button', { name: 'Hide checklist' }).count()).toBe(0)
    expect(await listAxeFaults(page)).toEqual([])
  })
})

test('the agent list requests the session, the agents and its script at the same time', async () => {
  const app = await startApp()
  await app.createAgent()
  const { page } = await openConsole(app, browser)
  const calls: string[] = []
  const answers = Promise.withResolvers<void>()
  await page.route('**/trpc/**', async (route) => {
    calls.push(new URL(route.request().url()).pathname)
    await answers.promise
    await route.continue()
  })
  // Holds back all responses, so that no request that depends on one of them is sent.
  const script = page.waitForRequest(/AgentsPage-.*\.js/)
  const data = page.waitForRequest((request) => request.url().includes('/trpc/'))
  await page.goto(`${app.url}/console/agents`, { waitUntil: 'commit' })
  await Promise.all([script, data])
  answers.resolve()
  await page.getByRole('link', { name: 'Greeter' }).waitFor()
  await page.getByText('Never').waitFor()
  // The navigation shows waiting conversations and used-up budgets later; neither delays the list.
  const inNavigation = ['/trpc/conversations.waiting', '/trpc/budgets.list']
  const others = calls.filter((path) => !inNavigation.includes(path))
  expect(others).toEqual(['/trpc/manager.me,agents.list,models.choices,usage.calls'])
})
