/** Tests which requests a page sends before the chat is opened, and the functions that control the chat. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openWidgetHarness, type WidgetHarness, type WidgetPage } from '../support/widget-harness.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: WidgetHarness
beforeAll(async () => {
  harness = await openWidgetHarness(
    {},
    `name: Helper
instructions: Help people.
embed:
  theme: { primaryColor: "#0f766e", launcherLabel: Ask us, launcherIcon: question }
`,
  )
})
afterAll(() => harness?.close())

const publicPart = () => harness.agent.agent_key.slice(0, 'agnt_key-'.length + 12)

/** Opens a page whose script tag has the key in its URL. */
async function open(options: object = {}, body = ''): Promise<WidgetPage & { requests: string[] }> {
  const requests: string[] = []
  harness.browser.once('context', (context) =>
    context.on('request', (request) => requests.push(new URL(request.url()).pathname)),
  )
  const source = `${harness.app.url}/embed/parley.js?key=${publicPart()}`
  const opened = await harness.open({
    head: `<script>ParleyChatConfig = ${JSON.stringify({ apiKey: harness.agent.agent_key, ...options })}</script>`,
    body: `${body}<script src="${source}"></script>`,
  })
  return { ...opened, requests }
}

const run = (opened: WidgetPage, code: string): Promise<unknown> => opened.page.evaluate(code)
const ofServer = (requests: readonly string[]) => requests.filter((path) => path.startsWith('/embed/'))

describe('a page with the loader', () => {
  test('requests only the loader until the visitor points at the launcher', async () => {
    const opened = await open()
    await opened.launcher.waitFor()
    await opened.page.waitForLoadState('networkidle')
    expect(ofServer(opened.requests)).toEqual(['/embed/parley.js'])
    await opened.launcher.hover()
    await expect.poll(() => opened.requests).toContain('/embed/frame')
    expect(opened.complaints).toEqual([])
    await opened.page.close()
  })

  test("shows the launcher with the agent's label and color before the frame has loaded", async () => {
    const opened = await open()
    await opened.launcher.getByText('Ask us').waitFor()
    const color = await opened.launcher.evaluate((element) => getComputedStyle(element).backgroundColor)
    expect(color).toBe('rgb(15, 118, 110)')
    expect(await opened.launcher.getAttribute('aria-label')).toBe('Ask us: Open chat')
    await opened.page.close()
  })

  test("loads the agent's theme in a second script if the key is not in the loader's URL", async () => {
    const opened = await harness.open({
      body: harness.script(`data-api-key="${harness.agent.agent_key}"`),
    })
    await opened.launcher.getByText('Ask us').waitFor()
    expect(opened.complaints).toEqual([])
    await opened.page.close()
  })

  test('loads the frame when the page is idle if the `load` option is `idle`', async () => {
    const opened = await open({ load: 'idle' })
    await expect.poll(() => opened.requests).toContain('/embed/frame')
    await opened.page.close()
  })
})

describe('the chat window', () => {
  test('is open again after a reload, until the visitor closes it', async () => {
    const opened = await open()
    await opened.launcher.click()
    await opened.frame.getByRole('textbox').waitFor()
    await opened.page.reload()
    await opened.frame.getByRole('textbox').waitFor()
    expect(await run(opened, 'ParleyChat.isOpen')).toBe(true)
    await opened.frame.getByRole('button', { name: 'Close chat' }).click()
    await opened.page.reload()
    await opened.launcher.waitFor()
    expect(await run(opened, 'ParleyChat.isOpen')).toBe(false)
    await opened.page.close()
  })

  test('can be expanded to a side panel and reduced again', async () => {
    const opened = await open()
    await opened.launcher.click()
    const box = () => opened.page.locator('parley-chat .window').boundingBox()
    await opened.frame.getByRole('button', { name: 'Expand' }).click()
    await expect.poll(async () => (await box())?.height).toBe(700)
    expect(await box()).toMatchObject({ x: 1000 - 560, y: 0 })
    await opened.frame.getByRole('button', { name: 'Reduce' }).click()
    await expect.poll(async () => (await box())?.width).toBe(400)
    await opened.page.close()
  })

  test('has exactly one close button while it is open', async () => {
    const opened = await open()
    await opened.launcher.click()
    await opened.frame.getByRole('button', { name: 'Close chat' }).waitFor()
    // The frame reports that it is ready only after it has rendered.
    await opened.launcher.waitFor({ state: 'hidden' })
    expect(await opened.page.getByRole('button', { name: 'Close chat' }).count()).toBe(0)
    await opened.page.close()
  })
})

describe("the widget's texts in the visitor's language", () => {
  const openIn = async (locale: string, isBlocked = false) => {
    const context = await harness.browser.newContext({ locale })
    const page = await context.newPage()
    const chunks: string[] = []
    page.on('request', (request) => {
      if (request.url().includes('/embed/chunk-')) chunks.push(request.url())
    })
    if (isBlocked) await page.route('**/embed/chunk-*', (route) => route.abort())
    await page.goto(`${harness.app.url}/embed/preview`)
    await page.evaluate(
      (key) =>
        (window as never as { ParleyChat: { mount(o: object): void } }).ParleyChat.mount({
          apiKey: key,
          autoOpen: true,
        }),
      harness.agent.agent_key,
    )
    const input = page.frameLocator('parley-chat iframe').getByRole('textbox')
    await input.waitFor()
    const placeholder = await input.getAttribute('placeholder')
    await context.close()
    return { placeholder, count: chunks.length }
  }

  test('are loaded in a separate script, except for English', async () => {
    expect(await openIn('de-DE')).toEqual({ placeholder: 'Nachricht eingeben …', count: 1 })
    expect(await openIn('en-US')).toEqual({ placeholder: 'Type a message...', count: 0 })
  })

  test('are replaced by English texts if their script cannot be loaded', async () => {
    expect(await openIn('ja-JP', true)).toEqual({ placeholder: 'Type a message...', count: 1 })
  })
})

describe('the widget', () => {
  test('reports invalid options when it is mounted, before the frame loads', async () => {
    const opened = await open({
      primaryColor: 'var(--brand)',
      endpoint: `${harness.app.url}/v1/chat/completions`,
      headers: { Authorization: 'Bearer secret', 'X-Shop': 'yes' },
      tools: [{ type: 'function', function: { name: 'not a name' } }],
    })
    const errors = async () =>
      (await opened.events()).filter(([name]) => name === 'error').map(([, detail]) => detail)
    const expected = [
      { code: 'invalid_option', message: 'primaryColor' },
      {
        code: 'invalid_option',
        message: 'headers: `Authorization` is not sent to this server; set `apiKey` to the agent key.',
      },
      {
        code: 'invalid_option',
        message: 'tools[0]: the name must have 1 to 52 letters, digits, `_` and `-`',
      },
    ]
    await expect.poll(errors).toEqual(expected)
    for (const { message } of expected) expect(opened.complaints.join('\n')).toContain(message)
    expect(opened.requests).not.toContain('/embed/frame')
    await opened.launcher.click()
    await opened.frame.getByRole('textbox').waitFor()
    expect(await errors()).toEqual(expected)
    await opened.page.close()
  })

  test.each([
    ['a missing key', { apiKey: '' }, 'missing_api_key'],
    ['a parent key', { apiKey: 'svc_0123456789' }, 'invalid_api_key'],
    ['a server that does not respond', { widgetUrl: 'http://localhost:9' }, 'frame_unreachable'],
  ])('reports an error for %s', async (_what, options, code) => {
    const opened = await open(options)
    expect(await opened.event('error')).toMatchObject({ code })
    expect(await run(opened, 'ParleyChat.isOpen')).toBe(false)
    await opened.page.close()
  })
})

test('a page that was loaded before the server was updated can open the chat', async () => {
  const opened = await open()
  await opened.launcher.waitFor()
  await opened.page.route('**/embed/extras-*', (route) => route.fulfill({ status: 404 }))
  await opened.launcher.click()
  await opened.frame.getByRole('textbox').waitFor()
  expect(opened.requests).toContain('/embed/extras.js')
  await opened.page.close()
})

describe('in the page API', () => {
  test('sendMessage opens the chat and sends the text, and the message events contain no text', async () => {
    const opened = await open()
    await run(opened, "heard = []; ParleyChat.on('message', (message) => heard.push(message))")
    await run(opened, "ParleyChat.sendMessage('Hello from the page')")
    await opened.frame.locator('main').getByText('You said: Hello from the page').waitFor()
    await expect
      .poll(() => run(opened, 'heard'))
      .toEqual([{ role: 'user' }, { role: 'assistant', status: 'done' }])
    await opened.page.close()
  })

  test('prefill puts the text into the input without sending it', async () => {
    const opened = await open()
    await run(opened, "ParleyChat.prefill('A draft')")
    await expect.poll(() => opened.frame.getByRole('textbox').inputValue()).toBe('A draft')
    expect(await opened.frame.locator('.user').count()).toBe(0)
    await opened.page.close()
  })

  test('setUser hides the conversation of the previous user', async () => {
    const opened = await open()
    await run(opened, "ParleyChat.setUser('one'); ParleyChat.sendMessage('Secret of one')")
    await opened.frame.locator('main').getByText('You said: Secret of one').waitFor()
    await run(opened, "ParleyChat.setUser('two')")
    await opened.frame.locator('.user').waitFor({ state: 'detached' })
    await opened.page.close()
  })

  test('on returns a function that removes the listener', async () => {
    const opened = await open()
    await run(opened, "count = 0; stop = ParleyChat.on('opened', () => count++); ParleyChat.open()")
    await run(opened, 'ParleyChat.close(); stop(); ParleyChat.open()')
    expect(await run(opened, 'count')).toBe(1)
    await opened.page.close()
  })

  test('unreadCount counts unread answers, and titleBadge shows the number in the page title', async () => {
    const opened = await open({ titleBadge: true })
    await run(opened, "ParleyChat.sendMessage('Hello'); ParleyChat.close()")
    await expect.poll(() => run(opened, 'ParleyChat.unreadCount')).toBe(1)
    await expect.poll(() => opened.page.title()).toBe('(1) A page')
    await run(opened, 'ParleyChat.open()')
    await expect.poll(() => opened.page.title()).toBe('A page')
    await opened.page.close()
  })
})

describe('a new answer', () => {
  const countTones =
    '<script>tones = 0; const { start } = OscillatorNode.prototype; OscillatorNode.prototype.start = function () { tones++; start.call(this) }</script>'

  test.each([
    ['plays one tone in a closed window if the `sound` option is set', { sound: true }, 1],
    ['plays no tone by default', { titleBadge: true }, 0],
  ])('%s', async (_what, options, tones) => {
    const opened = await open(options, countTones)
    await run(opened, "ParleyChat.sendMessage('Hello'); ParleyChat.close()")
    await expect.poll(() => run(opened, 'ParleyChat.unreadCount')).toBe(1)
    expect(await run(opened, 'tones')).toBe(tones)
    await opened.page.close()
  })

  test('plays no tone in an open window', async () => {
    const opened = await open({ sound: true }, countTones)
    await run(
      opened,
      "ended = false; ParleyChat.on('message', ({ role }) => (ended ||= role === 'assistant'))",
    )
    await run(opened, "ParleyChat.sendMessage('Hello')")
    await expect.poll(() => run(opened, 'ended')).toBe(true)
    expect(await run(opened, 'tones')).toBe(0)
    await opened.page.close()
  })
})

describe('proactive rules', () => {
  test('show a teaser, which opens the chat or can be dismissed for this tab', async () => {
    const opened = await open({ teaser: 'Can I help?', teaserDelay: 0 })
    const teaser = opened.page.getByRole('button', { name: 'Can I help?' })
    await teaser.click()
    await opened.event('opened')
    await run(opened, 'ParleyChat.close()')
    await opened.page.reload()
    await teaser.waitFor()
    await opened.page.getByRole('button', { name: 'Close message' }).click()
    await opened.page.reload()
    await opened.launcher.waitFor()
    expect(await teaser.count()).toBe(0)
    await opened.page.close()
  })

  test('open the chat when the visitor has scrolled far enough', async () => {
    const opened = await open({ rules: [{ scroll: 50, open: true }] }, '<div style="height: 5000px"></div>')
    await expect.poll(() => opened.requests.join()).toContain('/embed/extras-')
    await opened.page.mouse.wheel(0, 5000)
    await opened.event('opened')
    await opened.page.close()
  })

  test('open the chat when the pointer leaves the page at the top, but not at the side', async () => {
    const opened = await open({
      rules: [
        { after: 0, teaser: 'Rules apply' },
        { exitIntent: true, open: true },
      ],
    })
    await opened.page.getByRole('button', { name: 'Rules apply' }).waitFor()
    const leave = (clientX: number, clientY: number) =>
      opened.page.locator('html').dispatchEvent('mouseout', { clientX, clientY, relatedTarget: null })
    await leave(-1, 300)
    expect(await run(opened, 'ParleyChat.isOpen')).toBe(false)
    await leave(500, -1)
    await opened.event('opened')
    await opened.page.close()
  })

  test('apply only on the listed pages', async () => {
    const opened = await open({
      rules: [
        { after: 0, open: true, pages: ['/elsewhere'] },
        { after: 0, teaser: 'Here', pages: ['/*'] },
      ],
    })
    await opened.page.getByRole('button', { name: 'Here' }).waitFor()
    expect(await run(opened, 'ParleyChat.isOpen')).toBe(false)
    await opened.page.close()
  })
})

test('the debug panel lists events on localhost without message text', async () => {
  const opened = await open({ debug: true })
  await opened.page.getByText('Parley debug').click()
  await run(opened, "ParleyChat.sendMessage('Top secret')")
  await opened.page.getByText(/message .*role=assistant/).waitFor()
  expect(await opened.page.locator('parley-chat .debug').innerText()).not.toContain('secret')
  await opened.page.close()
})
