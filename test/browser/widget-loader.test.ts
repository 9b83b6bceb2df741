/** Tests the loader script's script tags, options, methods and events. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openWidgetHarness, type WidgetHarness, type WidgetPage } from '../support/widget-harness.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: WidgetHarness
beforeAll(async () => {
  harness = await openWidgetHarness()
})
afterAll(() => harness?.close())

const config = (options: object = {}) =>
  `<script>ParleyChatConfig = ${JSON.stringify({ apiKey: harness.agent.agent_key, ...options })}</script>`

/** Evaluates code in the page. */
const run = (opened: WidgetPage, code: string): Promise<unknown> => opened.page.evaluate(code)

const open = (options: object = {}, document: { head?: string; body?: string } = {}) =>
  harness.open({
    head: config(options) + (document.head ?? ''),
    body: (document.body ?? '') + harness.script(),
  })

describe('the loader script', () => {
  test.each([
    ['in the head', (script: string) => ({ head: script })],
    ['at the end of the body', (script: string) => ({ body: script })],
    ['as an async script', (script: string) => ({ head: script.replace('<script', '<script async') })],
    ['as a deferred script', (script: string) => ({ head: script.replace('<script', '<script defer') })],
    [
      'as a module',
      (script: string) => ({ head: script.replace('<script', '<script type="module" crossorigin') }),
    ],
  ])('shows the launcher when it is included %s', async (_where, place) => {
    const { head = '', body = '' } = place(harness.script()) as { head?: string; body?: string }
    const opened = await harness.open({ head: config() + head, body })
    await opened.launcher.waitFor()
    expect(opened.complaints).toEqual([])
    await opened.page.close()
  })

  test('shows the launcher when it is inserted after the page has loaded, with an integrity attribute', async () => {
    const opened = await harness.open({ head: config() })
    const { loader } = JSON.parse(
      await (await import('node:fs/promises')).readFile('dist/widget/manifest.json', 'utf8'),
    )
    await opened.page.evaluate(
      ([src, integrity]) => {
        const script = document.createElement('script')
        Object.assign(script, { src, integrity, crossOrigin: 'anonymous' })
        document.body.append(script)
      },
      [`${harness.app.url}/embed/${loader.file}`, loader.integrity],
    )
    await opened.launcher.waitFor()
    await opened.page.close()
  })

  test('creates only one widget when it is included twice', async () => {
    const opened = await harness.open({ head: config() + harness.script(), body: harness.script('async') })
    await opened.event('ready')
    expect(await opened.page.locator('parley-chat').count()).toBe(1)
    expect(opened.complaints).toEqual([])
    await opened.page.close()
  })

  test('reads options from its attributes, which ParleyChatConfig overrides', async () => {
    const attributes = `data-api-key="${harness.agent.agent_key}" data-title="By attribute" data-position="bottom-left" data-auto-open data-width="300"`
    const opened = await harness.open({
      head: '<script>ParleyChatConfig = { width: 320 }</script>',
      body: harness.script(attributes),
    })
    await opened.event('opened')
    await opened.frame.getByRole('heading', { name: 'By attribute' }).waitFor()
    const box = await opened.page.locator('parley-chat .window').boundingBox()
    expect(box).toMatchObject({ x: 20, width: 320 })
    await opened.page.close()
  })

  test('does not mount the widget until mount() is called if autoMount is false', async () => {
    const opened = await open({ autoMount: false })
    await opened.page.waitForLoadState('networkidle')
    expect(await opened.page.locator('parley-chat').count()).toBe(0)
    await run(opened, 'ParleyChat.mount({ autoOpen: true })')
    await opened.event('opened')
    await opened.page.close()
  })

  test('runs calls that were queued before it loaded', async () => {
    const head = `<script>
      ParleyChat = { q: [['ready', () => document.body.dataset.ready = 'yes'], ['configure', { title: 'Queued' }], ['open'], ['setContext', { page: 1 }]] }
    </script>`
    const opened = await open({}, { head })
    await opened.event('opened')
    await opened.frame.getByRole('heading', { name: 'Queued' }).waitFor()
    expect(await run(opened, 'document.body.dataset.ready')).toBe('yes')
    expect(opened.complaints).toEqual([])
    await opened.page.close()
  })
})

describe('the ParleyChat object', () => {
  test('opens, closes and toggles the window, and notifies callbacks and document listeners', async () => {
    const head = `<script>
      heard = []
      for (const name of ['onReady', 'onOpen', 'onClose']) ParleyChatConfig[name] = () => heard.push(name)
    </script>`
    const opened = await open({}, { head })
    expect(await run(opened, 'ParleyChat.ready.then((chat) => chat === ParleyChat)')).toBe(true)
    await run(
      opened,
      'ParleyChat.open(); ParleyChat.open(); ParleyChat.toggle(); ParleyChat.close(); ParleyChat.toggle()',
    )
    expect(await run(opened, '[ParleyChat.isOpen, ParleyChat.hasUnread, ParleyChat.iframe.tagName]')).toEqual(
      [true, false, 'IFRAME'],
    )
    expect(await run(opened, 'heard')).toEqual(['onReady', 'onOpen', 'onClose', 'onOpen'])
    expect((await opened.events()).map(([name]) => name)).toEqual(['ready', 'opened', 'closed', 'opened'])
    await opened.page.close()
  })

  test('can change and reset options at run time', async () => {
    const opened = await open({ autoOpen: true, title: 'First' })
    await opened.event('opened')
    await run(opened, "ParleyChat.configure({ title: 'Second', position: 'bottom-left', defaultUI: false })")
    await opened.frame.getByRole('heading', { name: 'Second' }).waitFor()
    expect(await opened.launcher.isVisible()).toBe(false)
    expect((await opened.page.locator('parley-chat .window').boundingBox())?.x).toBe(20)
    await run(opened, 'ParleyChat.configure({ title: undefined, defaultUI: true })')
    await opened.frame.getByRole('heading', { name: 'Helper' }).waitFor()
    await run(opened, 'ParleyChat.close()')
    expect(await opened.launcher.isVisible()).toBe(true)
    await opened.page.close()
  })

  test('removes the widget on destroy() and restores it on mount()', async () => {
    const opened = await open()
    await opened.event('ready')
    await run(opened, 'ParleyChat.destroy(); ParleyChat.destroy()')
    expect(await opened.page.locator('parley-chat').count()).toBe(0)
    expect(await run(opened, 'ParleyChat.iframe')).toBe(null)
    await run(opened, 'ParleyChat.mount(); ParleyChat.ready.then((chat) => chat.open())')
    await expect
      .poll(async () => (await opened.events()).map(([name]) => name))
      .toEqual(['ready', 'ready', 'opened'])
    await opened.page.close()
  })

  test('rejects a second widget on the same page', async () => {
    const opened = await open()
    await opened.event('ready')
    await run(opened, 'ParleyChat.mount({ onError: (error) => { code = error.code } })')
    expect(await run(opened, 'code')).toBe('already_mounted')
    expect(opened.complaints).toEqual([expect.stringContaining('already_mounted')])
    expect(await opened.page.locator('parley-chat').count()).toBe(1)
    await opened.page.close()
  })
})

test('the loader ignores invalid options and reports their names but not their values', async () => {
  const wrong = {
    theme: 'secret-1',
    position: 'secret-2',
    primaryColor: 'secret-3',
    width: 'secret-4',
    height: -5,
    autoOpen: 'secret-5',
    context: ['secret-6'],
    tools: 'secret-7',
    widgetUrl: 'ftp://secret-8',
    onOpen: 'secret-9',
    title: null,
  }
  const opened = await open(wrong)
  await opened.launcher.click()
  await opened.event('opened')
  await opened.frame.getByRole('textbox').waitFor()
  const { title: _title, ...refused } = wrong
  const named = (await opened.events()).filter(([name]) => name === 'error').map(([, detail]) => detail)
  expect(named).toEqual(
    expect.arrayContaining(Object.keys(refused).map((message) => ({ code: 'invalid_option', message }))),
  )
  expect(named).toHaveLength(Object.keys(refused).length)
  expect(opened.complaints.join()).not.toContain('secret')
  expect(await opened.page.locator('parley-chat .window').boundingBox()).toMatchObject({
    width: 400,
  })
  await opened.page.close()
})

test('debug mode logs event names but not keys, context or messages', async () => {
  const opened = await open({
    debug: true,
    autoOpen: true,
    context: { word: 'contextual' },
    title: 'Titular',
  })
  const lines: string[] = []
  opened.page.on('console', (message) => lines.push(message.text()))
  await opened.event('opened')
  await opened.frame.getByRole('textbox').fill('textual')
  await opened.frame.getByRole('textbox').press('Enter')
  await opened.frame.locator('main').getByText('You said: textual').waitFor()
  await run(opened, 'ParleyChat.close()')
  await expect.poll(() => lines.join()).toContain('Parley: closed')
  for (const secret of [harness.agent.agent_key, 'contextual', 'textual', 'Titular']) {
    expect(lines.join()).not.toContain(secret)
  }
  await opened.page.close()
})
