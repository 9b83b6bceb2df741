/** Tests the `parley/react` component and hook, bundled into a page. */
import { join } from 'node:path'
import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { build, type Rolldown } from 'vite'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { openWidgetHarness, type WidgetHarness, type WidgetPage } from '../support/widget-harness.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const repository = join(import.meta.dirname, '../..')
const component = join(repository, 'dist/widget/react.js')
let harness: WidgetHarness
let script: string

beforeAll(async () => {
  script = await bundle()
  harness = await openWidgetHarness()
})
afterAll(() => harness?.close())

async function bundle(): Promise<string> {
  const { output } = (await build({
    root: join(repository, 'test/widget-react'),
    configFile: false,
    logLevel: 'error',
    resolve: { alias: { 'parley/react': component } },
    define: { 'process.env.NODE_ENV': '"development"' },
    build: {
      write: false,
      minify: false,
      rolldownOptions: {
        input: join(repository, 'test/widget-react/page.tsx'),
        output: { format: 'iife', codeSplitting: false },
        // Rolldown would warn about the `use client` directive.
        onLog: () => {},
      },
    },
  })) as Rolldown.RolldownOutput
  return output[0].code.replaceAll('</script', '<\\/script')
}

async function openPage(): Promise<WidgetPage> {
  const opened = await harness.open({ body: `<div id="root"></div><script>${script}</script>` })
  onTestFinished(() => opened.page.close())
  return opened
}

/** Renders a component with the props in `code`, and more components with the props in `more`. */
const show = ({ page }: WidgetPage, code = '{}', { more = '', isStrict = false } = {}) => {
  const base = JSON.stringify({ apiKey: harness.agent.agent_key, widgetUrl: harness.app.url })
  return page.evaluate(`show({ all: [{ ...${base}, ...${code} } ${more}], isStrict: ${isStrict} })`)
}

const heard = ({ page }: WidgetPage) => page.evaluate('heard') as Promise<[string, unknown][]>
const namesHeard = async (opened: WidgetPage) => (await heard(opened)).map(([name]) => name)
const status = async ({ page }: WidgetPage) => JSON.parse((await page.locator('output').textContent()) ?? '')

test('the component shows the widget and calls the callbacks, and the hook returns its state', async () => {
  const opened = await openPage()
  await opened.page.evaluate('show({ all: [] })')
  expect(await status(opened)).toEqual({ isReady: false, isOpen: false, hasUnread: false, hasFrame: false })
  await show(opened)
  await opened.launcher.click()
  await expect
    .poll(() => status(opened))
    .toEqual({ isReady: true, isOpen: true, hasUnread: false, hasFrame: true })
  expect(await namesHeard(opened)).toEqual(['onReady', 'onOpen'])
  await opened.page.evaluate('chat.close(); chat.toggle(); chat.toggle(); chat.open()')
  await expect
    .poll(() => namesHeard(opened))
    .toEqual(['onReady', 'onOpen', 'onClose', 'onOpen', 'onClose', 'onOpen'])
  expect(opened.complaints).toEqual([])
})

test('the component applies changed props and restores the default of a removed prop', async () => {
  const opened = await openPage()
  await show(opened, '{ autoOpen: true, title: "First", position: "bottom-left", tools: [], headers: {} }')
  await opened.frame.getByRole('heading', { name: 'First' }).waitFor()
  expect((await opened.page.locator('parley-chat .window').boundingBox())?.x).toBe(20)
  await show(opened, '{ autoOpen: true, title: "Second", tools: [], headers: {} }')
  await opened.frame.getByRole('heading', { name: 'Second' }).waitFor()
  expect((await opened.page.locator('parley-chat .window').boundingBox())?.x).toBe(1000 - 20 - 400)
  await show(opened, '{ autoOpen: true }')
  await opened.frame.getByRole('heading', { name: 'Helper' }).waitFor()
  expect(await namesHeard(opened)).toEqual(['onReady', 'onOpen'])
})

test('the component sends the context again only if it has changed', async () => {
  const opened = await openPage()
  // The request bodies contain the context that the model receives.
  const bodies: string[] = []
  opened.page.on('request', (request) => {
    if (request.url().includes('chat.stream')) bodies.push(request.postData() ?? '')
  })
  const ask = async (text: string) => {
    await opened.frame.getByRole('textbox').fill(text)
    await opened.frame.getByRole('textbox').press('Enter')
    await opened.frame.locator('main').getByText(`You said: ${text}`).waitFor()
    return bodies.at(-1)
  }
  await opened.page.evaluate('context = { place: "garden" }')
  await show(opened, '{ autoOpen: true, context }')
  await opened.event('opened')
  expect(await ask('one')).toContain('garden')
  await opened.page.evaluate('context.place = "cellar"')
  await show(opened, '{ autoOpen: true, context }')
  expect(await ask('two')).toContain('garden')
  await show(opened, '{ autoOpen: true, context: { ...context } }')
  expect(await ask('three')).toContain('cellar')
  await opened.page.evaluate('chat.setContext({ place: "attic" })')
  expect(await ask('four')).toContain('attic')
})

test('the component passes tool calls to the latest callback', async () => {
  const opened = await openPage()
  const tools = `[{ type: 'function', function: { name: 'find', parameters: { type: 'object', properties: { q: { type: 'string' } } } } }]`
  await show(opened, `{ autoOpen: true, tools: ${tools}, onToolCall: echo('old') }`)
  await opened.event('opened')
  await show(opened, `{ autoOpen: true, tools: ${tools}, onToolCall: echo('new') }`)
  await opened.frame.getByRole('textbox').fill('[[tool:postMessage_find {"q":"tea"}]]')
  await opened.frame.getByRole('textbox').press('Enter')
  await opened.frame.getByText('"word":"new"').waitFor()
})

test('the component creates one widget in strict mode, removes it on unmount and creates it again on mount', async () => {
  const opened = await openPage()
  await show(opened, '{}', { isStrict: true })
  await opened.launcher.waitFor()
  expect(await opened.page.locator('parley-chat').count()).toBe(1)
  await opened.page.evaluate('show({ all: [], isStrict: true })')
  await expect.poll(() => opened.page.locator('parley-chat').count()).toBe(0)
  expect(await status(opened)).toMatchObject({ isReady: false, hasFrame: false })
  await show(opened, '{}', { isStrict: true })
  await opened.launcher.waitFor()
  expect(opened.complaints).toEqual([])
})

test('a second component logs a warning and does not render a widget', async () => {
  const opened = await openPage()
  await show(opened, '{}', { more: ', {}' })
  await opened.launcher.waitFor()
  expect(await opened.page.locator('parley-chat').count()).toBe(1)
  expect(await heard(opened)).toContainEqual(['onError1', 'already_mounted'])
  expect(opened.complaints).toEqual([expect.stringContaining('already_mounted')])
})

test("the hook's sendMessage sends a message on the visitor's behalf", async () => {
  const opened = await openPage()
  await show(opened, '{ autoOpen: true }')
  await opened.event('opened')
  await opened.page.evaluate('chat.sendMessage("private words")')
  await opened.frame.locator('main').getByText('You said: private words').waitFor()
  expect(opened.complaints).toEqual([])
})

test("the hook's newConversation starts a new conversation", async () => {
  const opened = await openPage()
  await show(opened, '{ autoOpen: true }')
  await opened.event('opened')
  const frame = opened.page.frameLocator('iframe')
  await frame.locator('textarea').fill('the first topic')
  await frame.locator('textarea').press('Enter')
  await frame.locator('article.user').waitFor()
  await opened.page.evaluate('chat.newConversation()')
  await expect.poll(() => frame.locator('article.user').count()).toBe(0)
  expect(opened.complaints).toEqual([])
})

test('the component can be rendered on a server', async () => {
  const { ParleyChat, useParleyChat } = await import(component)
  const Status = () => {
    const { isReady, isOpen, hasUnread, iframe } = useParleyChat()
    return JSON.stringify([isReady, isOpen, hasUnread, iframe])
  }
  const page = createElement('main', null, createElement(ParleyChat, { apiKey: 'k' }), createElement(Status))
  expect(renderToString(page)).toBe('<main>[false,false,false,null]</main>')
})

test('the hook calls listeners for events, and changes the user and the visitor', async () => {
  const opened = await openPage()
  await show(opened, '{ autoOpen: true }')
  const { page } = opened
  await expect.poll(async () => (await status(opened)).isReady, { timeout: 20_000 }).toBe(true)
  await page.evaluate(`
    heardRoles = []
    stop = chat.on('message', ({ role }) => heardRoles.push(role))
    chat.setUser('customer-17')`)
  const frame = page.frameLocator('parley-chat iframe')
  await frame.getByRole('textbox').fill('Hello')
  await frame.getByRole('button', { name: 'Send', exact: true }).click()
  await expect.poll(() => page.evaluate('heardRoles'), { timeout: 20_000 }).toEqual(['user', 'assistant'])
  await page.evaluate('chat.setUser("customer-18")')
  await frame.getByText('You said: Hello').waitFor({ state: 'detached' })
  await page.evaluate('stop(); chat.setUser("customer-17")')
  await frame.getByText('You said: Hello').waitFor()
  expect(await page.evaluate('heardRoles')).toEqual(['user', 'assistant'])
})
