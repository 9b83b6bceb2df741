/**
 * Tests a takeover in the middle of an answer, with a visitor and an owner in two browsers and a proxy that
 * cuts the visitor's connections.
 */
import type { Page } from 'playwright-core'
import { expect, onTestFinished, test, vi } from 'vitest'
import { CuttingProxy } from '../support/cutting-proxy.ts'
import { shareUpstream } from '../support/start-upstream.ts'
import { storedIn } from '../support/stored-frames.ts'
import { storingEnv } from '../support/stored-turns.ts'
import { openFrame, openFrameHarness, openFramePages, visibleText } from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const upstream = await shareUpstream()
const MESSAGES = 50

const definition = JSON.stringify({
  name: 'Keeper',
  model: 'up-chat',
  instructions: 'Answer.',
  conversations: { keep: '30d', onDisconnect: 'continue', handover: { timeout: '1d' } },
})

const listChats = async () =>
  (await upstream.listRequests()).filter(({ path }) => path === '/v1/chat/completions')

const isPositive = (count: number) => count > 0

interface OwnersItem {
  readonly role?: string
  readonly content?: readonly { readonly text: string }[]
  readonly parley: { readonly author: string }
}

/**
 * Starts a server, and opens the widget in one browser behind a proxy, and a page of the owner in another
 * browser.
 */
async function startBoth() {
  await upstream.clear()
  const harness = await openFrameHarness(storingEnv(upstream), definition)
  onTestFinished(() => harness.close())
  const proxy = await CuttingProxy.open(harness.app.url)
  onTestFinished(() => proxy.close())
  const { browser, hostUrl, close } = await openFramePages(proxy.url)
  onTestFinished(close)
  const parts = { key: harness.agent.agent_key, browser, hostUrl }
  const visitor = await openFrame(parts, { isSameSite: true })
  await visitor.post({ type: 'visibility', isOpen: true })
  const owner = await harness.browser.newPage()
  await owner.goto(`${harness.app.url}/demo`)
  return { proxy, parts, visitor, call: callIn(owner, harness.app.key) }
}

/** Returns a function that sends a request in the owner's page. */
function callIn(page: Page, key: string) {
  return (method: string, path: string, body?: object) =>
    page.evaluate(
      async (given) => {
        const headers = { Authorization: `Bearer ${given.key}`, 'Content-Type': 'application/json' }
        const init = given.body === undefined ? {} : { body: JSON.stringify(given.body) }
        const response = await fetch(given.path, { method: given.method, headers, ...init })
        return { status: response.status, body: await response.json() }
      },
      { key, method, path: `/v1/conversations/${path}`, body },
    )
}

test('over failing connections, 50 messages from a visitor and 10 from a person arrive exactly once each, and the model is called again only when the visitor writes after the handback', async () => {
  const { proxy, parts, visitor, call } = await startBoth()
  await visitor.say('Explain. {{up:hang-after 4}}')
  await visitor.frame.locator('article.reply .prose').waitFor()
  const id = JSON.parse(Object.values(await storedIn(visitor))[0] ?? '{}').conversation
  expect((await call('POST', `${id}/takeover`, { name: 'Ana' })).status).toBe(200)
  await visitor.frame.getByText('You are talking to Ana').waitFor()
  await expect.poll(async () => (await listChats())[0]?.endedBy).toBe('client')

  const asked = Array.from({ length: MESSAGES }, (_, index) => `Question ${index}`)
  const said = Array.from({ length: MESSAGES / 5 }, (_, index) => `Answer ${index}`)
  const broken = { reset: 0, end: 0 }
  for (const [index, text] of asked.entries()) {
    await visitor.say(text)
    const how = index % 2 === 0 ? 'reset' : 'end'
    if (index % 3 === 0) broken[how] += proxy.cut(how)
    if (index % 5 !== 0) continue
    const message = { name: 'Ana', client_id: crypto.randomUUID(), text: said[index / 5] }
    expect((await call('POST', `${id}/messages`, message)).status).toBe(200)
  }

  expect(broken).toEqual({ reset: expect.toSatisfy(isPositive), end: expect.toSatisfy(isPositive) })

  const readItems = async (author: string): Promise<string[]> => {
    const { body } = await call('GET', `${id}/items?order=asc&limit=100`)
    return body.data
      .filter((item: OwnersItem) => item.parley.author === author && item.role !== undefined)
      .map((item: OwnersItem) => item.content?.[0]?.text)
  }
  const [question = ''] = await readItems('visitor')
  await expect.poll(() => readItems('visitor'), { timeout: 60_000 }).toEqual([question, ...asked])
  expect(await readItems('person')).toEqual(said)
  expect(await listChats()).toHaveLength(1)

  const bubblesOf = (opened: typeof visitor, kind: string) =>
    opened.frame.locator(`.${kind} .bubble`).allTextContents()
  await expect.poll(() => bubblesOf(visitor, 'person'), { timeout: 60_000 }).toEqual(said)
  expect(await bubblesOf(visitor, 'user')).toEqual([question, ...asked])
  expect((await call('POST', `${id}/handback`)).status).toBe(200)
  await visibleText(visitor.frame, 'The assistant answers again.').waitFor()
  expect(await listChats()).toHaveLength(1)
  await visitor.say('And now?')
  await expect.poll(async () => (await listChats()).length).toBe(2)
  await visitor.settle()
  expect(await listChats()).toHaveLength(2)
  expect(await readItems('visitor')).toEqual([question, ...asked, 'And now?'])
  expect(await readItems('person')).toEqual(said)

  const again = await openFrame(parts, { isSameSite: true, beside: visitor })
  await again.post({ type: 'visibility', isOpen: true })
  await expect.poll(() => bubblesOf(again, 'user')).toEqual([question, ...asked, 'And now?'])
  expect(await bubblesOf(again, 'person')).toEqual(said)
})
