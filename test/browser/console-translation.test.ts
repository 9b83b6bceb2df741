/** Tests that no English text of the catalogue remains on the console's pages in German and Arabic. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { en } from '../../client/strings/en/index.ts'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { makeSignInUrl, openWindow } from '../support/console-ui.ts'
import { saveScreenshot } from '../support/screenshots.ts'
import { sendChat } from '../support/usage.ts'
import { beginSession, sayAndWait } from '../support/visitors.ts'
import { createWebhook } from '../support/webhook-receiver.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

type Texts = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** Returns the texts without parameters and plural forms, by key. */
function listTexts(catalogue: Texts): Map<string, string> {
  return new Map(
    Object.entries(catalogue).flatMap(([area, texts]) =>
      Object.entries(texts).flatMap(([key, text]): [string, string][] =>
        typeof text === 'string' && !text.includes('{') ? [[`${area}.${key}`, text]] : [],
      ),
    ),
  )
}

/**
 * Returns the English texts whose translations differ, except those that equal another text in the language.
 */
async function listUntranslated(code: string): Promise<Set<string>> {
  const module = (await import(`../../client/strings/${code}/index.ts`)) as Readonly<Record<string, Texts>>
  const own = new Set(listTexts(module[code] ?? {}).values())
  return new Set([...listTexts(en).values()].filter((text) => !own.has(text)))
}

/** Returns the texts of a page and the names of its controls, except in code and editors. */
function readTexts(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const texts: string[] = []
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode())
      if (node.parentElement?.closest('code, pre, script, style, .cm-editor, textarea') === null)
        texts.push(node.textContent ?? '')
    for (const element of document.querySelectorAll('*'))
      for (const name of ['aria-label', 'title', 'placeholder', 'alt'])
        texts.push(element.getAttribute(name) ?? '')
    return texts.map((text) => text.trim()).filter((text) => text !== '')
  })
}

const pagesOf = ({ agentId, visitorId, webhookId, conversationId }: Prepared) => [
  '/agents',
  '/agents/new',
  '/agents/new?template=analyst&view=form',
  `/agents/${agentId}?view=form`,
  `/agents/${agentId}?view=try&try=true`,
  `/agents/${agentId}/embed`,
  `/agents/${agentId}/models`,
  `/agents/${agentId}/history`,
  '/conversations',
  `/conversations/${conversationId}`,
  '/visitors',
  `/visitors/${visitorId}`,
  '/webhooks',
  '/webhooks?add=true',
  `/webhooks/${webhookId}`,
  '/keys',
  '/keys?tab=agent',
  '/usage',
  '/usage?by=agent',
  '/usage?status=ok',
  '/usage?view=calls',
  '/uploads',
  '/files',
  '/bin',
  '/providers',
  '/providers?add=',
  '/providers?add=openrouter',
  '/providers?add=other',
  '/admin',
  '/admin?tab=keys',
  '/admin?tab=usage',
  '/admin?tab=audit',
  '/get-started',
]

interface Prepared {
  readonly app: TestApp
  readonly agentId: string
  readonly visitorId: string
  readonly conversationId: string
  readonly webhookId: string
}

async function prepare(): Promise<Prepared> {
  const app = await startApp()
  const { agent_id: agentId, agent_key: key } = await app.createAgent(
    'name: Zq\ninstructions: Zq.\npageTools:\n  restricted:\n    - zq\ntools:\n  - name: zq\n    description: Zq\nattachments: { types: [image] }\nconversations:\n  keep: 30d\n  handover: { timeout: 5m }\n',
  )
  await sendChat(app, 'zq', {}, key)
  const visitor = await beginSession(app, key)
  await sayAndWait(visitor, 'zq')
  const webhook = await createWebhook(app, { url: 'https://example.org/zq', events: ['turn.failed'] })
  const { body } = await app.call('GET', '/v1/conversations')
  const conversationId = body.data[0].id
  return { app, agentId, visitorId: visitor.id, conversationId, webhookId: webhook.id }
}

test.each([
  ['de-DE', 'de', 'ltr'],
  ['ar-EG', 'ar', 'rtl'],
] as const)(
  'in a browser in %s, no page contains an English text of the catalogue',
  async (locale, code, direction) => {
    const prepared = await prepare()
    const { app, agentId } = prepared
    const english = await listUntranslated(code)
    expect(english.size).toBeGreaterThan(500)
    const { page, complaints } = await openWindow(app, browser, { locale })
    await page.goto(await makeSignInUrl(app))
    await page.waitForURL('**/console/agents')
    const found: string[] = []
    // This is also the name of the user who signs in with a link.
    english.delete('Administrator')
    for (const path of pagesOf(prepared)) {
      await page.goto(`${app.url}/console${path}`)
      await page.locator('h1').waitFor()
      await page.waitForFunction(() => document.querySelector('.mantine-Skeleton-root') === null)
      const texts = await readTexts(page)
      expect(texts.length, path).toBeGreaterThan(20)
      found.push(...texts.filter((text) => english.has(text)).map((text) => `${path}: ${text}`))
      await saveScreenshot(page, `${code}${path.replaceAll(/[^a-z]+/gi, '-').replaceAll(agentId, 'agent')}`)
    }
    expect([...new Set(found)]).toEqual([])
    expect(await page.evaluate(() => document.documentElement.dir)).toBe(direction)
    expect(complaints).toEqual([])
  },
)
