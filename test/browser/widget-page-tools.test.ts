/** Tests tools that a host page provides to the model through the widget. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openWidgetHarness, type WidgetHarness, type WidgetPage } from '../support/widget-harness.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: WidgetHarness
beforeAll(async () => {
  const yaml = 'name: Helper\ninstructions: Help people.\npageTools: { blocked: [forbidden] }\n'
  harness = await openWidgetHarness({}, yaml)
})
afterAll(() => harness?.close())

const tool = (name: string, annotations: object = {}) => ({
  type: 'function',
  function: {
    name,
    description: `Does ${name}.`,
    parameters: { type: 'object', properties: {} },
    annotations,
  },
})

/** Opens a page that runs `code` before the loader script and `after` after it; `c` is the configuration. */
async function open(tools: readonly object[], code = '', after = ''): Promise<WidgetPage> {
  const config = { apiKey: harness.agent.agent_key, autoOpen: true, tools }
  const head = `<script>called = []; const c = ParleyChatConfig = ${JSON.stringify(config)}; ${code}</script>`
  const opened = await harness.open({ head, body: `${harness.script()}<script>${after}</script>` })
  onTestFinished(() => opened.page.close())
  await opened.event('opened')
  return opened
}

async function say({ frame }: WidgetPage, text: string): Promise<void> {
  await frame.getByRole('textbox').fill(text)
  await frame.getByRole('textbox').press('Enter')
}

const called = ({ page }: WidgetPage) => page.evaluate('called')

const answering = `c.onToolCall = (tool, args, sendResult) => { called.push([tool, args]); sendResult({ tool, done: true }) }`

/** Returns code that hides an event from the test's listeners. */
const unheard = (name: string) =>
  `window.addEventListener('parley-chat-${name}', (event) => event.stopImmediatePropagation(), true)`

describe('a reply', () => {
  const share = async (code: string) => {
    const opened = await open([], code)
    await say(opened, 'hello')
    await opened.frame.getByRole('button', { name: 'Share', exact: true }).click()
    return opened
  }

  test('is confirmed as shared if the page receives it', async () => {
    const { frame } = await share(`c.onUserShare = () => {}`)
    await frame.getByRole('button', { name: 'Shared' }).waitFor()
  })

  test('has no Share or Insert button if the page has no callback for that action', async () => {
    const opened = await open([], '')
    await say(opened, 'hello')
    const reply = opened.frame.locator('article.reply').last()
    await reply.getByRole('button', { name: 'Answer again' }).waitFor()
    expect(await reply.getByRole('button', { name: /share|insert/i }).count()).toBe(0)
  })
})

describe('a tool call', () => {
  test("is handled by the page's callback, and the model continues with the result", async () => {
    const opened = await open([tool('find')], answering)
    await say(opened, '[[tool:postMessage_find {"q":"tea"}]]')
    await opened.frame.locator('article.reply').getByText('"done":true').waitFor()
    expect(await called(opened)).toEqual([['find', { q: 'tea' }]])
    expect(opened.complaints).toEqual([])
  })

  test('can be handled by a document listener', async () => {
    const listener = `document.addEventListener('parley-chat-tool-call', ({ detail }) => detail.sendResult('heard ' + detail.tool))`
    const opened = await open([tool('find')], listener)
    await say(opened, '[[tool:postMessage_find {}]]')
    await opened.frame.getByText('The tool answered: heard find').waitFor()
  })

  test('fails immediately and is reported to the page if the page has no handler', async () => {
    const opened = await open([tool('find')], unheard('tool-call'))
    await say(opened, '[[tool:postMessage_find {}]]')
    await opened.frame.getByText('The tool answered: Error: No onToolCall').waitFor()
    expect(await opened.event('error')).toMatchObject({
      code: 'invalid_option',
      message: expect.stringContaining('onToolCall'),
    })
  })

  test("returns an error to the model if the page's callback fails", async () => {
    const opened = await open(
      [tool('find')],
      `c.onToolCall = async () => { throw new Error('the shop is shut') }`,
    )
    await say(opened, '[[tool:postMessage_find {}]]')
    await opened.frame.getByText('The tool answered: Error: the shop is shut').waitFor()
    expect(opened.complaints).toEqual([])
  })

  test('is answered together with a second call in the same reply', async () => {
    const opened = await open([tool('one'), tool('two')], answering)
    await say(opened, '[[tool:postMessage_one {}]] [[tool:postMessage_two {}]]')
    await opened.frame.locator('article.reply').getByText('"tool":"two"').waitFor()
    expect(await called(opened)).toEqual([
      ['one', {}],
      ['two', {}],
    ])
  })

  test('to a tool that the agent blocks is not passed to the page', async () => {
    const opened = await open([tool('forbidden'), tool('find')], answering)
    await say(opened, '[[tool:postMessage_forbidden {}]]')
    // The window accepts the next message when the answer is complete.
    await opened.frame.getByRole('button', { name: 'Answer again' }).waitFor()
    await say(opened, '[[tool:postMessage_find {}]]')
    await opened.frame.locator('article.reply').getByText('"tool":"find"').waitFor()
    expect(await called(opened)).toEqual([['find', {}]])
  })

  test("to a destructive tool waits for the user's approval", async () => {
    const opened = await open([tool('remove', { destructiveHint: true })], answering)
    await say(opened, '[[tool:postMessage_remove {"id":7}]]')
    await opened.frame
      .locator('article.reply')
      .getByRole('definition')
      .getByText('7', { exact: true })
      .waitFor()
    expect(await called(opened)).toEqual([])
    await opened.frame.getByRole('button', { name: 'Allow once' }).click()
    await opened.frame.locator('article.reply').getByText('"done":true').waitFor()
    expect(await called(opened)).toEqual([['remove', { id: 7 }]])
  })
})

test('the widget offers newly configured tools with the next message', async () => {
  const opened = await open([], answering)
  const tools = JSON.stringify([tool('late')])
  await opened.page.evaluate(`ParleyChat.configure({ tools: ${tools} })`)
  await say(opened, '[[tool:postMessage_late {}]]')
  await opened.frame.locator('article.reply').getByText('"tool":"late"').waitFor()
})

describe('WebMCP tools', () => {
  const register = (place: string, name: string, options = '{}') =>
    `${place}.modelContext.registerTool({ name: '${name}', description: 'x', inputSchema: { type: 'object' }, execute: (args) => ({ by: '${name}', args }) }, ${options});`

  test.each(['navigator', 'document'])(
    'registered with %s.modelContext are offered to the model and can run',
    async (place) => {
      const opened = await open([], answering, register(place, 'weather'))
      await say(opened, '[[tool:postMessage_weather {"day":1}]]')
      await opened.frame.locator('article.reply').getByText('"by":"weather"').waitFor()
      expect(await called(opened)).toEqual([])
    },
  )

  test('are no longer offered after the page unregisters them', async () => {
    const code = `stop = new AbortController(); ${register('document', 'first', 'stop')} ${register('document', 'second')} ${register('document', 'third')}`
    const opened = await open([], answering, code)
    const offered = () =>
      opened.page.evaluate(() => [
        ...((window as never as Record<symbol, Map<string, unknown> | undefined>)[
          Symbol.for('parley.webmcp')
        ]?.keys() ?? []),
      ])
    expect(await offered()).toEqual(['first', 'second', 'third'])
    await opened.page.evaluate("stop.abort(); document.modelContext.unregisterTool('second')")
    expect(await offered()).toEqual(['third'])
    await say(opened, '[[tool:postMessage_third {}]]')
    await opened.frame.locator('article.reply').getByText('"by":"third"').waitFor()
    await opened.page.evaluate('document.modelContext.provideContext({ tools: [] })')
    expect(await offered()).toEqual([])
  })

  test("are also registered with the browser's native API", async () => {
    const native = `
      native = { names: [], registerTool({ name }) { if (name === 'bad') throw new Error('bad tool'); this.names.push(name) }, unregisterTool() {} }
      Object.defineProperty(document, 'modelContext', { value: native, configurable: true })`
    const opened = await open([], `${answering};${native}`, register('document', 'weather'))
    expect(await opened.page.evaluate('native.names')).toEqual(['weather'])
    const refused = opened.page.evaluate("document.modelContext.registerTool({ name: 'bad', execute() {} })")
    await expect(refused).rejects.toThrow('bad tool')
    await say(opened, '[[tool:postMessage_weather {}]]')
    await opened.frame.locator('article.reply').getByText('"by":"weather"').waitFor()
  })
})
