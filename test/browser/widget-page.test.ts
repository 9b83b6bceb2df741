/**
 * Tests the widget on a host page: its launcher, its window, strict CSPs, allowed origins and forged
 * messages.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openWidgetHarness, type WidgetHarness, type WidgetPage } from '../support/widget-harness.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: WidgetHarness
beforeAll(async () => {
  harness = await openWidgetHarness()
})
afterAll(() => harness?.close())

const config = (options: object = {}, key = harness.agent.agent_key) =>
  `<script nonce="n">ParleyChatConfig = ${JSON.stringify({ apiKey: key, ...options })}</script>`

async function open(options: object = {}, body = '', browser = {}): Promise<WidgetPage> {
  const opened = await harness.open({ head: config(options), body: body + harness.script() }, browser)
  onTestFinished(() => opened.page.close())
  return opened
}

const focused = ({ page }: WidgetPage) =>
  page.evaluate(() => {
    const { activeElement } = document
    return (activeElement?.shadowRoot?.activeElement ?? activeElement)?.className
  })

describe('the launcher', () => {
  test('is a button with an accessible name and an expanded state', async () => {
    const opened = await open()
    const button = opened.page.getByRole('button', { name: 'Open chat' })
    await button.waitFor()
    expect(await button.getAttribute('aria-expanded')).toBe('false')
    await button.focus()
    await opened.page.keyboard.press('Enter')
    await opened.frame.getByRole('button', { name: 'Close chat' }).waitFor()
    expect(await opened.launcher.getAttribute('aria-expanded')).toBe('true')
    expect(await opened.page.locator('parley-chat iframe').getAttribute('title')).not.toBe('')
  })

  test("is labeled in the visitor's language", async () => {
    const opened = await open({}, '', { locale: 'de-DE' })
    await opened.launcher.waitFor()
    expect(await opened.launcher.getAttribute('aria-label')).toBe('Chat öffnen')
  })

  test.each([
    ['de-DE', {}, 'Chat öffnen', 'Chat schließen'],
    ['en-US', { language: 'ja' }, 'チャットを開く', 'チャットを閉じる'],
    ['xx', {}, 'Open chat', 'Close chat'],
  ])(
    "is labeled for closing while the frame loads, in the widget's language (%s, %o)",
    async (locale, options, closed, open_) => {
      const opened = await open(options, '', { locale })
      await opened.page.route('**/embed/frame*', () => {})
      await opened.launcher.waitFor()
      const name = () => opened.launcher.getAttribute('aria-label')
      expect(await name()).toBe(closed)
      await opened.launcher.click()
      expect([await name(), await opened.launcher.getAttribute('aria-expanded')]).toEqual([open_, 'true'])
      await opened.launcher.click()
      expect(await name()).toBe(closed)
    },
  )

  test('regains focus when Escape closes the window', async () => {
    const opened = await open()
    await opened.launcher.click()
    await opened.frame.getByRole('textbox').press('Escape')
    await opened.event('closed')
    expect(await focused(opened)).toBe('launcher')
    await opened.launcher.press('Enter')
    await opened.frame.getByRole('textbox').waitFor()
    await opened.launcher.focus()
    await opened.page.keyboard.press('Escape')
    await expect.poll(() => opened.launcher.getAttribute('aria-expanded')).toBe('false')
  })

  test("can be replaced by the page's own button, which regains focus when Escape closes the window", async () => {
    const opened = await open(
      { defaultUI: false },
      '<button class="own" onclick="ParleyChat.open()">Help</button>',
    )
    await opened.event('ready')
    expect(await opened.launcher.isVisible()).toBe(false)
    await opened.page.getByRole('button', { name: 'Help' }).click()
    await opened.frame.getByRole('textbox').press('Escape')
    await opened.event('closed')
    expect(await focused(opened)).toBe('own')
  })

  test('shows the number of messages that arrived while the window was closed', async () => {
    const opened = await open()
    await opened.launcher.click()
    await opened.frame.getByRole('textbox').fill('[[delay:300]] one two three four five')
    await opened.frame.getByRole('textbox').press('Enter')
    await opened.page.evaluate('ParleyChat.close()')
    expect(await opened.event('unread')).toEqual({ count: 1 })
    expect(await opened.page.locator('parley-chat .badge').textContent()).toBe('1')
    expect(await opened.launcher.getAttribute('aria-label')).toMatch(/^Open chat \(.+\)$/)
    expect(await opened.page.evaluate('ParleyChat.hasUnread')).toBe(true)
    await opened.launcher.click()
    await opened.page.locator('parley-chat .badge').waitFor({ state: 'hidden' })
  })

  test.each([
    '#4f46e5',
    '#ffffff',
    '#000000',
    'yellow',
    'red',
    '#808080',
    'hsl(200 90% 45%)',
    '#777',
    'oklch(0.6 0.2 150)',
  ])('has a contrast of at least 4.5:1 with the primary color %s', async (primaryColor) => {
    const opened = await open({ primaryColor })
    await opened.launcher.waitFor()
    const ratio = await opened.launcher.evaluate((button) => {
      const luminanceOf = (color: string) => {
        const context = document.createElement('canvas').getContext('2d') as CanvasRenderingContext2D
        context.fillStyle = color
        context.fillRect(0, 0, 1, 1)
        const [red = 0, green = 0, blue = 0] = [...context.getImageData(0, 0, 1, 1).data].map((part) =>
          part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue
      }
      const { color, backgroundColor } = getComputedStyle(button)
      const [light = 0, dark = 0] = [color, backgroundColor]
        .map(luminanceOf)
        .sort((one, other) => other - one)
      return (light + 0.05) / (dark + 0.05)
    })
    expect(ratio).toBeGreaterThanOrEqual(4.5)
  })
})

describe('the chat window', () => {
  test('fills the screen on a phone and can be closed', async () => {
    const opened = await open({}, '', { viewport: { width: 390, height: 780 } })
    await opened.launcher.click()
    await opened.event('opened')
    const box = await opened.page.locator('parley-chat .window').boundingBox()
    expect(box).toEqual({ x: 0, y: 0, width: 390, height: 780 })
    await opened.frame.getByRole('button', { name: /close/i }).click()
    await opened.event('closed')
    expect(await opened.launcher.isVisible()).toBe(true)
  })

  test('stays within the safe area of a phone', async () => {
    const opened = await open({}, '', { viewport: { width: 390, height: 780 } })
    const session = await opened.page.context().newCDPSession(opened.page)
    const insets = { top: 47, right: 8, bottom: 34, left: 0 }
    await session.send('Emulation.setSafeAreaInsetsOverride' as never, { insets } as never)
    await opened.launcher.waitFor()
    const { x = 0, y = 0, width = 0, height = 0 } = (await opened.launcher.boundingBox()) ?? {}
    expect([390 - x - width, 780 - y - height]).toEqual([20 + 8, 20 + 34])
    await opened.launcher.click()
    await opened.event('opened')
    const box = () => opened.page.locator('parley-chat iframe').boundingBox()
    await expect.poll(box).toEqual({ x: 0, y: 47, width: 390, height: 780 - 47 - 34 })
  })

  test('has its launcher on the configured side of a right-to-left page', async () => {
    const opened = await open(
      { position: 'bottom-right' },
      '<script nonce="n">document.documentElement.dir = "rtl"</script>',
    )
    await opened.launcher.waitFor()
    expect((await opened.launcher.boundingBox())?.x).toBe(1000 - 20 - 56)
  })

  test('accepts CSS lengths for its size and fits on a small screen', async () => {
    const opened = await open({ width: '30rem', height: '200vh', autoOpen: true })
    await opened.event('opened')
    expect(await opened.page.locator('parley-chat .window').boundingBox()).toEqual({
      x: 1000 - 20 - 480,
      y: 20,
      width: 480,
      height: 700 - 40,
    })
  })

  test('has no visible launcher when the page is printed', async () => {
    const opened = await open()
    await opened.launcher.waitFor()
    await opened.page.emulateMedia({ media: 'print' })
    expect(await opened.launcher.isVisible()).toBe(false)
  })

  test('can be embedded in a page element, open and without a launcher', async () => {
    const style = '<div id="here" style="width: 400px; height: 500px"></div>'
    const opened = await open({ containerId: 'here' }, style)
    await opened.event('opened')
    expect(await opened.page.locator('#here iframe').boundingBox()).toMatchObject({ width: 400, height: 500 })
    expect(await opened.launcher.count()).toBe(0)
    await opened.page.evaluate('ParleyChat.close()')
    expect(await opened.page.evaluate('ParleyChat.isOpen')).toBe(true)
  })

  test('is not created when its container does not exist', async () => {
    const opened = await open({ containerId: 'gone' })
    expect(await opened.event('error')).toEqual({ code: 'container_not_found', message: 'gone' })
    expect(await opened.page.locator('parley-chat').count()).toBe(0)
  })
})

test('a visitor can chat on a page whose CSP allows only the loader script and the frame', async () => {
  const policy = `default-src 'none'; script-src ${harness.app.url} 'nonce-n'; frame-src ${harness.app.url}; require-trusted-types-for 'script'; trusted-types 'none'`
  const headers = { 'Content-Security-Policy': policy }
  const opened = await harness.open({ head: config({ autoOpen: true }), body: harness.script(), headers })
  const requests: string[] = []
  opened.page.on('request', (request) => requests.push(new URL(request.url()).origin))
  await opened.event('opened')
  await opened.frame.getByRole('textbox').fill('Good evening')
  await opened.frame.getByRole('textbox').press('Enter')
  await opened.frame.locator('main').getByText('You said: Good evening').waitFor()
  const { width } = (await opened.page.locator('parley-chat .window').boundingBox()) ?? {}
  expect([width, opened.complaints]).toEqual([400, []])
  expect(new Set(requests)).toEqual(new Set([harness.app.url]))
  await opened.page.close()
})

describe('an agent restricted to certain origins', () => {
  const openLocked = async (origin: string) => {
    const yaml = `name: Locked\ninstructions: x\nembed: { origins: ["${origin}"] }\n`
    const { agent_key } = await harness.app.createAgent(yaml)
    const opened = await harness.open({ head: config({}, agent_key), body: harness.script() })
    onTestFinished(() => opened.page.close())
    return opened
  }

  test('is shown on an allowed origin', async () => {
    await (await openLocked(harness.origin)).launcher.waitFor()
  })

  test('shows only a developer hint on other origins', async () => {
    const opened = await openLocked('https://elsewhere.example')
    expect(await opened.event('error')).toMatchObject({ code: 'frame_unreachable' })
    const hint = opened.page.getByRole('alert')
    await hint.waitFor()
    expect(await hint.textContent()).toContain('embed.origins')
    expect(await hint.textContent()).toContain(harness.origin)
    expect(await opened.launcher.isVisible()).toBe(false)
    expect(opened.complaints.join()).toContain('frame_unreachable')
  })
})

test('the widget ignores messages from other windows', async () => {
  const forgers = await Promise.all([1, 2, 3].map(() => startForger()))
  onTestFinished(() => {
    for (const { close } of forgers) close()
  })
  const frames = forgers.map(({ url }) => `<iframe src="${url}"></iframe>`).join('')
  const opened = await open({}, frames)
  await opened.event('ready')
  // Asks each attacking frame to repeat its messages, and waits until all have confirmed.
  await opened.page.evaluate(
    () =>
      new Promise<void>((resolve) => {
        let heard = 0
        addEventListener('message', ({ data }) => {
          if (data === 'said' && ++heard === 3) resolve()
        })
        for (const frame of document.querySelectorAll('iframe'))
          frame.contentWindow?.postMessage('again', '*')
      }),
  )
  expect((await opened.events()).map(([name]) => name)).toEqual(['ready'])
  expect(await opened.launcher.getAttribute('aria-expanded')).toBe('false')
  expect(await opened.page.locator('parley-chat .badge').isVisible()).toBe(false)
  // The page and the frame can still communicate with each other.
  await opened.launcher.click()
  await opened.page.evaluate(() =>
    (globalThis as unknown as { ParleyChat: { configure(options: object): void } }).ParleyChat.configure({
      title: 'Still here',
    }),
  )
  await opened.frame.getByRole('heading', { name: 'Still here' }).waitFor()
})

/** Serves a page on another origin that sends forged messages to its parent and sibling frames. */
async function startForger(): Promise<{ url: string; close: () => void }> {
  const forge = () => {
    const protocol = 'parley/1'
    const lies = [
      { type: 'frame-hello', session: '' },
      { type: 'page-hello', session: 'forged' },
      { type: 'port', session: 'forged' },
      { type: 'ready', words: { open: 'Forged', close: 'Forged', window: 'Forged' } },
      { type: 'unread', count: 7, label: 'forged' },
      { type: 'insert', text: 'forged', close: false },
      { type: 'share', kind: 'message', text: 'forged' },
      { type: 'error', code: 'offline', message: 'forged' },
      { type: 'mcp', message: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
    ]
    const targets = () => [parent, ...Array.from({ length: parent.length }, (_, at) => parent[at] as Window)]
    const lieToAll = () => {
      for (const target of targets()) {
        for (const lie of lies) target.postMessage({ protocol, ...lie }, '*', [new MessageChannel().port2])
      }
    }
    setInterval(lieToAll, 20)
    addEventListener('message', ({ data }) => {
      if (data !== 'again') return
      lieToAll()
      parent.postMessage('said', '*')
    })
  }
  const html = `<!doctype html><script>(${forge.toString()})()</script>`
  const server = createServer((_request, response) =>
    response.setHeader('Content-Type', 'text/html').end(html),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => server.close(),
  }
}
