/** Tests how the console's pages and files are served. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'

const html = { Accept: 'text/html' }

test('every console URL returns the HTML page with a new nonce', async () => {
  const app = await startApp()
  const nonces = []
  for (const path of ['/console', '/console/agents', '/console/agents/agent-x/history?version=2']) {
    const response = await fetch(app.url + path, { headers: html })
    const text = await response.text()
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(response.headers.get('cache-control')).toBe('no-store')
    const [, nonce = ''] = /nonce="([^"]+)"/.exec(text) ?? []
    nonces.push(nonce)
    expect(response.headers.get('content-security-policy')).toBe(
      `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data: blob:; font-src 'self'; media-src 'self' blob:; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'`,
    )
  }
  expect(new Set(nonces).size).toBe(3)
})

test('POST requests, requests for JSON and requests for other paths do not return the HTML page', async () => {
  const app = await startApp()
  const status = async (path: string, init: RequestInit = {}) => (await fetch(app.url + path, init)).status
  expect(await status('/console/agents', { headers: { Accept: 'application/json' } })).toBe(404)
  expect(await status('/console/assets/main-00000000.js', { headers: html })).toBe(404)
  expect(await status('/consoles', { headers: html })).toBe(404)
  expect(await status('/console/agents', { method: 'POST', headers: html })).toBe(405)
  expect(await status('/console', { method: 'HEAD', headers: html })).toBe(200)
})

test('console files are immutable and are compressed for clients that accept compression', async () => {
  const app = await startApp()
  const text = await (await fetch(`${app.url}/console`, { headers: html })).text()
  const [, path = ''] = /<script type="module" src="([^"]+)"/.exec(text) ?? []
  const small = await fetch(app.url + path, { headers: { 'Accept-Encoding': 'br' } })
  const large = await fetch(app.url + path, { headers: { 'Accept-Encoding': 'identity' } })
  expect(small.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect([small.headers.get('content-encoding'), large.headers.get('content-encoding')]).toEqual(['br', null])
  expect(small.headers.get('vary')).toBe('Accept-Encoding')
  expect(await small.text()).toBe(await large.text())
})

interface BuiltFile {
  readonly file: string
  readonly gzipBytes: number
  readonly needs: string[]
  readonly later: string[]
}

/** The chunks that every page loads after its own. */
const common = ['CommandPalette']

/** The chunks that each route loads in addition to the shell; a page below an agent also loads AgentPage. */
const routes: Readonly<Record<string, readonly string[]>> = {
  '/agents': ['AgentsPage'],
  '/agents/new': ['NewAgentPage'],
  '/agents/$agentId': ['AgentPage', 'EditAgentPage'],
  '/agents/$agentId/history': ['AgentPage', 'HistoryPage'],
  '/agents/$agentId/embed': ['AgentPage', 'embed'],
  '/agents/$agentId/models': ['AgentPage', 'policy'],
  '/conversations': ['ConversationsPage'],
  '/conversations/$conversationId': ['ConversationsPage', 'ConversationPage'],
  '/visitors': ['VisitorsPage'],
  '/visitors/$visitorId': ['VisitorPage'],
  '/webhooks': ['WebhooksPage'],
  '/webhooks/$webhookId': ['WebhookPage'],
  '/keys': ['keys'],
  '/usage': ['usage'],
  '/budgets': ['BudgetsPage'],
  '/budgets/$budgetId': ['BudgetPage'],
  '/prices': ['prices'],
  '/uploads': ['uploads'],
  '/files': ['files'],
  '/bin': ['bin'],
  '/providers': ['providers'],
  '/admin': ['admin'],
  '/get-started': ['first-run'],
  '/_design': ['DesignPage'],
}

test('a first visit to any console page in any language loads at most 350 KiB of compressed JavaScript', async () => {
  const { main, first, files }: { main: string; first: string; files: BuiltFile[] } = JSON.parse(
    await readFile(new URL('../../../dist/console/manifest.json', import.meta.url), 'utf8'),
  )
  const find = (name: string) => files.find(({ file }) => file === name) as BuiltFile
  const pages = new Map(find(main).later.map((name) => [name.replace(/-.{8}\.js$/, ''), name]))
  expect([...pages.keys()].sort()).toEqual([...new Set([...common, ...Object.values(routes).flat()])].sort())
  const languages = ['en', ...files.flatMap(({ file }) => languageOf(file) ?? [])]
  expect(languages.sort()).toEqual(['ar', 'de', 'en', 'es', 'fr', 'it', 'ja', 'pt', 'zh'])
  for (const language of languages) {
    for (const [route, names] of Object.entries(routes)) {
      const loaded = new Set([first, main, ...[...common, ...names].map((name) => pages.get(name) ?? '')])
      for (const name of loaded) {
        const { needs, later } = find(name)
        for (const needed of needs) loaded.add(needed)
        // Excludes editors, which load after the page is usable, and dialogs, which load when they open.
        for (const one of later)
          if (name !== main && !loadsLater(one) && (languageOf(one) ?? language) === language) loaded.add(one)
      }
      const scripts = [...loaded].filter((name) => name.endsWith('.js'))
      expect(scripts.filter(loadsLater)).toEqual([])
      const size = scripts.reduce((sum, name) => sum + find(name).gzipBytes, 0)
      expect(size, `${route} in ${language}`).toBeLessThanOrEqual(350 * 1024)
    }
  }
})

/** Returns the language of a catalogue; English is part of the main script. */
const languageOf = (file: string) => /^(ar|de|es|fr|it|ja|pt|zh)-.{8}\.js$/.exec(file)?.[1]
const loadsLater = (file: string) => /^(CodeEditor|DiffView|code-theme|RatingsDialog)-/.test(file)
