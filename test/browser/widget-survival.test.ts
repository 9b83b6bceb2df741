/** Tests that the widget survives changes to the host page and does not disturb its focus and history. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openWidgetHarness, type WidgetHarness, type WidgetPage } from '../support/widget-harness.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: WidgetHarness
beforeAll(async () => {
  harness = await openWidgetHarness()
})
afterAll(() => harness?.close())

const open = (options: object = {}, body = '') =>
  harness.open({
    head: `<script>ParleyChatConfig = ${JSON.stringify({ apiKey: harness.agent.agent_key, ...options })}</script>`,
    body: body + harness.script(),
  })

const run = (opened: WidgetPage, code: string): Promise<unknown> => opened.page.evaluate(code)

test.each([
  ['replaces its body element', "document.body.replaceWith(document.createElement('body'))"],
  ['replaces the content of its body', "document.body.innerHTML = '<p>Next</p>'"],
])('the widget stays open on a page that %s', async (_case, code) => {
  const opened = await open({ autoOpen: true })
  await opened.event('opened')
  await run(opened, code)
  await opened.frame.getByText('Hello!').waitFor()
  expect(await opened.page.locator('parley-chat').count()).toBe(1)
  expect(await run(opened, 'ParleyChat.isOpen')).toBe(true)
  await opened.page.close()
})

test('the widget returns to its container when the page replaces the container', async () => {
  const box = '<div id="box" style="height: 400px"></div>'
  const opened = await open({ containerId: 'box' }, `<main>${box}</main>`)
  await opened.event('opened')
  await run(opened, `document.querySelector('main').innerHTML = '${box}'`)
  await opened.page.locator('#box > parley-chat').waitFor()
  await opened.frame.getByText('Hello!').waitFor()
  await opened.page.close()
})

test('autoOpen does not move the focus away from a page field', async () => {
  const opened = await open({ autoOpen: true, autoMount: false }, '<input id="name">')
  await opened.page.locator('#name').focus()
  await run(opened, 'ParleyChat.mount()')
  await opened.event('opened')
  await opened.frame.getByText('Hello!').waitFor()
  await opened.page.keyboard.type('Ada')
  expect(await opened.page.locator('#name').inputValue()).toBe('Ada')
  await opened.page.close()
})

test('open() does not move the focus away from a page field, but a click on the launcher does', async () => {
  const opened = await open({}, '<input id="name">')
  await opened.event('ready')
  await opened.page.locator('#name').focus()
  await run(opened, 'ParleyChat.open()')
  expect(await run(opened, 'document.activeElement.id')).toBe('name')
  await run(opened, 'ParleyChat.close()')
  await opened.launcher.click()
  await opened.frame.locator('textarea:focus').waitFor()
  await opened.page.close()
})

test('changing the key does not add an entry to the browser history', async () => {
  const other = await harness.app.createAgent()
  const opened = await open({ autoOpen: true })
  await opened.event('opened')
  const before = await run(opened, 'history.length')
  await run(opened, `ParleyChat.configure({ apiKey: '${other.agent_key}' })`)
  await opened.frame.getByRole('heading', { name: 'Greeter' }).waitFor()
  expect(await run(opened, 'history.length')).toBe(before)
  await opened.page.close()
})

test.each(['inherit', 'currentcolor', 'transparent', 'var(--x)', 'env(x)'])(
  'the primary color %s is reported to the page as invalid, and the default is used',
  async (primaryColor) => {
    const opened = await open({ primaryColor })
    expect(await opened.event('error')).toMatchObject({ code: 'invalid_option', message: 'primaryColor' })
    await opened.launcher.waitFor()
    expect(await opened.launcher.evaluate((one) => getComputedStyle(one).backgroundColor)).toBe(
      'rgb(79, 70, 229)',
    )
    await opened.page.close()
  },
)

test('a frame that does not load within 15 seconds is reported to the page as unreachable', async () => {
  const opened = await harness.open({ body: harness.script('data-auto-mount="false"') })
  await opened.page.clock.install()
  await opened.page.route('**/embed/frame*', () => {})
  await run(opened, `ParleyChat.mount({ apiKey: '${harness.agent.agent_key}' })`)
  await opened.page.clock.fastForward(15_000)
  expect(await opened.event('error')).toMatchObject({ code: 'frame_unreachable' })
  await opened.page.close()
})

test('an invalid tool is reported to the page, and valid tools are still offered', async () => {
  const name = 'x'.repeat(53)
  const opened = await open({
    autoOpen: true,
    tools: [
      { type: 'function', function: { name } },
      null,
      { type: 'function', function: { name: 'good', parameters: { type: 'object' } } },
      {
        type: 'function',
        function: { name: 'long', parameters: { type: 'object', title: 'x'.repeat(300_000) } },
      },
    ],
  })
  await expect
    .poll(async () =>
      (await opened.events())
        .filter(([one]) => one === 'error')
        .map(([, detail]) => (detail as { message: string }).message),
    )
    .toEqual([
      expect.stringMatching(/^tools\[0\]: the name/),
      expect.stringMatching(/^tools\[1\]: the name/),
      expect.stringMatching(/^tools\[3\]: the parameters/),
    ])
  const request = opened.page.waitForRequest((one) => one.url().includes('chat.stream'))
  await opened.frame.getByRole('textbox').fill('hello')
  await opened.frame.getByRole('textbox').press('Enter')
  const sent = JSON.parse((await request).postData() ?? '')[0].json
  expect(sent.tools.map((tool: { function: { name: string } }) => tool.function.name)).toEqual([
    'postMessage_good',
  ])
  await opened.page.close()
})

test('a double click on Send does not stop the reply', async () => {
  const opened = await open({ autoOpen: true })
  await opened.event('opened')
  await opened.frame.getByRole('textbox').fill('[[delay:50]] one two three')
  await opened.frame.locator('.main-button').dblclick()
  await opened.frame.getByText('one two three').nth(1).waitFor()
  expect(await opened.frame.getByText('You stopped this answer.').count()).toBe(0)
  await opened.page.close()
})
