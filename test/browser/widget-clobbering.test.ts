/** Tests that the loader works on pages whose elements shadow properties of `document` and `window`. */
import { createServer } from 'node:http'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listenOnOtherOrigin } from '../support/other-origin.ts'
import { openWidgetHarness, type WidgetHarness } from '../support/widget-harness.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: WidgetHarness
let evilOrigin: string
const evilRequests: string[] = []
const evil = createServer(({ url = '' }, response) => {
  evilRequests.push(url)
  response.end()
})
beforeAll(async () => {
  harness = await openWidgetHarness()
  evilOrigin = await listenOnOtherOrigin(evil)
})
afterAll(async () => {
  evil.close()
  await harness?.close()
})

const open = (content: string, attributes = '') =>
  harness.open({
    head: `<script>ParleyChatConfig = ${JSON.stringify({ apiKey: harness.agent.agent_key })}</script>`,
    body: content + harness.script(attributes),
  })

describe('the loader script', () => {
  test.each(['', 'async', 'type="module" crossorigin'])(
    'loads the frame from its own server when an image is named currentScript (script attributes: %s)',
    async (attributes) => {
      const opened = await open(
        `<img name="currentScript" src="${evilOrigin}/embed/parley.js" data-widget-url="${evilOrigin}">`,
        attributes,
      )
      await opened.launcher.click()
      expect(await opened.page.evaluate('new URL(ParleyChat.iframe.src).origin')).toBe(harness.app.url)
      expect(evilRequests.filter((url) => url.includes('frame'))).toEqual([])
      await opened.page.close()
    },
  )

  test.each([
    '<form id="ParleyChat"><input name="q"></form>',
    '<img name="ParleyChat"><img name="ParleyChat">',
    '<form id="ParleyChatConfig"><input name="apiKey"></form>',
    '<form name="body"></form>',
    '<img name="readyState"><img name="baseURI"><img name="activeElement">',
    '<img name="createElement"><img name="querySelector"><img name="getElementById">',
    '<img name="addEventListener"><img name="dispatchEvent">',
    '<form name="modelContext"><input name="registerTool"></form>',
  ])('mounts the widget on a page that contains %s', async (content) => {
    const opened = await open(content)
    await opened.launcher.waitFor()
    await opened.launcher.click()
    await opened.page.waitForFunction('ParleyChat.isOpen')
    await opened.frame.getByText('Hello!').waitFor()
    await opened.page.close()
  })
})
