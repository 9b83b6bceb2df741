/** Tests the console's model policy page and how the playground shows fallback models. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { launchBrowser } from '../support/browser.ts'
import { startChatHarness } from '../support/chat-harness.ts'
import { askInPlayground } from '../support/console-parts.ts'
import { openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import {
  createFallbackHarness,
  defaultModel,
  fallbackModel,
  noRetries,
  onlyForModel,
} from '../support/fallbacks.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const harness = await startChatHarness()
const { startAgent } = createFallbackHarness(harness)

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

async function choose(page: Page, label: string, option: string): Promise<void> {
  await page.getByRole('combobox', { name: label }).click()
  await page.getByRole('option', { name: option, exact: true }).click()
}

test('the policy page offers the available models and explains which one is in effect and why', async () => {
  const app = await harness.start()
  const { agent_id } = await app.createAgent('name: Guide\ninstructions: Help.\nmodel: up-small\n')
  const { page, complaints } = await openConsole(app, browser, `/agents/${agent_id}/models`)
  const effective = page.getByRole('region', { name: 'In effect now' })
  await effective.getByText('the definition specifies it and the policy allows it').waitFor()
  const first = effective.getByRole('listitem').first()
  expect(await first.innerText()).toContain('gateway/up-small')

  await choose(page, 'Default model', 'gateway/up-chat')
  await choose(page, 'Fallback models', 'gateway/up-small')
  await page.getByRole('combobox', { name: 'Allowed models' }).click()
  await page.getByRole('option', { name: 'gateway/up-chat', exact: true }).click()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('alert').getByText('fallback_models').waitFor()
  await expectView(page, 'policy-refused')

  await page.getByRole('combobox', { name: 'Allowed models' }).click()
  await page.getByRole('option', { name: 'gateway/up-small', exact: true }).click()
  await page.keyboard.press('Escape')
  for (const [percent, model] of [
    ['70', 'gateway/up-small'],
    ['50', 'gateway/up-chat'],
  ] as const) {
    await choose(page, 'Cheaper models', model)
    await page.getByRole('textbox', { name: `Percentage of a budget for ${model}` }).fill(percent)
  }
  await page.getByRole('button', { name: 'Save' }).click()
  await effective.getByText('the policy sets it as the default').waitFor()
  expect(await first.innerText()).toContain('gateway/up-chat')
  expect(await effective.getByRole('listitem').nth(1).innerText()).toMatch(/gateway\/up-small\s+fallback/i)
  await expectView(page, 'policy')
  const { body } = await app.call('GET', `/v1/agents/${agent_id}/model-policy`)
  expect(body).toMatchObject({
    default_model: defaultModel,
    allowed_models: [defaultModel, fallbackModel],
    fallback_models: [fallbackModel],
    degrade: [
      { at: 50, to: defaultModel },
      { at: 70, to: fallbackModel },
    ],
    source: 'policy',
  })
  expect(complaints.filter((line) => !line.includes('400'))).toEqual([])
})

test('the playground shows that a fallback model responded', async () => {
  const { app, id } = await startAgent({}, noRetries)
  const { page } = await openConsole(app, browser, `/agents/${id}?try=true`)
  const facts = page.getByRole('group', { name: 'Answer details' })
  await askInPlayground(page, 'hello')
  await facts.getByText('gateway/up-chat').waitFor()
  expect(await facts.getByText('fallback').count()).toBe(0)
  await askInPlayground(page, onlyForModel('{{up:status 500}}'))
  await facts.getByText('gateway/up-small').waitFor()
  expect(await facts.getByText('Fallback', { exact: true }).isVisible()).toBe(true)
  await facts.getByText('2 attempts').waitFor()
  await expectView(page, 'try-fallback')
})
