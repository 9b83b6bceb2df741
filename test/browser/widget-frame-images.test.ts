/** Tests the images in answers in the widget frame. */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listAxeFaults } from '../support/axe.ts'
import { openVisible } from '../support/stored-frames.ts'
import { type FrameHarness, helper, type OpenFrame, openFrameHarness } from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const pictures = new URL('../../docs/pictures/', import.meta.url)
const LISTED = 'https://images.example.org/room.png'
const OTHER = 'https://tracker.example.net/pixel.png'

let harness: FrameHarness
let png: Buffer
beforeAll(async () => {
  const listing = helper.replace('embed:\n', 'embed:\n  imageHosts: [images.example.org]\n')
  harness = await openFrameHarness({}, listing)
  png = await readFile(new URL('widget.png', pictures))
})
afterAll(() => harness?.close())

/** Opens a frame and shows an answer. Returns the requests to other hosts. */
async function openAnswer(text: string, more: Parameters<FrameHarness['open']>[0] = {}) {
  const opened = await openVisible(harness, more)
  const loaded: { readonly url: string; readonly headers: Record<string, string> }[] = []
  await opened.page.context().route(/^https:/, async (route) => {
    loaded.push({ url: route.request().url(), headers: await route.request().allHeaders() })
    await (route.request().url().includes('missing')
      ? route.fulfill({ status: 404 })
      : route.fulfill({ contentType: 'image/png', body: png }))
  })
  await opened.say(text)
  await opened.frame.locator('article.reply', { hasText: 'You said' }).waitFor()
  await opened.settle()
  return { opened, loaded }
}

const viewerOf = ({ frame }: OpenFrame) => frame.getByRole('dialog', { name: 'A room' })

describe('an image in an answer', () => {
  test('from a listed host is loaded without a referrer, and can be enlarged', async () => {
    const { opened, loaded } = await openAnswer(`![A room](${LISTED})`)
    const image = opened.frame.getByRole('button', { name: 'Enlarge: A room' })
    await expect
      .poll(() => image.locator('img').evaluate((one: HTMLImageElement) => one.naturalWidth))
      .toBeGreaterThan(100)
    expect(loaded[0]?.url).toBe(LISTED)
    expect(loaded[0]?.headers.referer).toBeUndefined()
    expect(loaded[0]?.headers.cookie).toBeUndefined()
    await image.click()
    await viewerOf(opened).waitFor()
    expect(await listAxeFaults(opened.frame)).toEqual([])
    await opened.page.keyboard.press('Escape')
    await expect.poll(() => viewerOf(opened).count()).toBe(0)
    expect(await image.evaluate((one) => one === document.activeElement)).toBe(true)
    await image.press('Enter')
    await viewerOf(opened).getByRole('button', { name: 'Close image' }).click()
    await expect.poll(() => viewerOf(opened).count()).toBe(0)
    expect((await opened.said()).filter(({ type }) => type === 'close')).toEqual([])
    expect(opened.complaints).toEqual([])
  })

  test.each([
    ['from another host', OTHER],
    ['over HTTP', 'http://images.example.org/room.png'],
    ['on another port', 'https://images.example.org:8443/room.png'],
    ['with a user name', 'https://images.example.org@tracker.example.net/room.png'],
    ['from a subdomain', 'https://a.images.example.org/room.png'],
  ])('%s is a link, and is not loaded', async (_, address) => {
    const { opened, loaded } = await openAnswer(`![A room](${address})`)
    await opened.frame.getByRole('link', { name: /A room/ }).waitFor()
    expect(await opened.frame.locator('article.reply img').count()).toBe(0)
    expect(loaded).toEqual([])
  })

  test('is a link if it cannot be loaded', async () => {
    const { opened } = await openAnswer('![A room](https://images.example.org/missing.png)')
    const link = opened.frame.getByRole('link', { name: /A room/ })
    expect(await link.getAttribute('href')).toBe('https://images.example.org/missing.png')
  })

  test('inside a link opens the link', async () => {
    const { opened } = await openAnswer(`[![A room](${LISTED})](https://example.org/rooms)`)
    const link = opened.frame.getByRole('link', { name: /A room/ })
    expect(await link.locator('img').count()).toBe(1)
    expect(await link.getAttribute('href')).toBe('https://example.org/rooms')
    expect(await opened.frame.getByRole('button', { name: /Enlarge/ }).count()).toBe(0)
  })

  test("is a link if the agent lists no hosts, and the frame's CSP blocks it", async () => {
    const agent = await harness.app.createAgent(helper)
    const { opened, loaded } = await openAnswer(`![A room](${LISTED})`, { key: agent.agent_key })
    await opened.frame.getByRole('link', { name: /A room/ }).waitFor()
    const isBlocked = await opened.frame.evaluate(
      (source) =>
        new Promise((resolve) => {
          const image = new Image()
          image.onload = () => resolve(false)
          image.onerror = () => resolve(true)
          image.src = source
        }),
      LISTED,
    )
    expect(isBlocked).toBe(true)
    expect(loaded).toEqual([])
  })
})
