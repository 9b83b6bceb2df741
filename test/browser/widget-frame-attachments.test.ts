/** Tests attachments in the widget frame: choosing, removing, sending and showing them again. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listAxeFaults } from '../support/axe.ts'
import {
  type FrameHarness,
  helper,
  keeper,
  type OpenFrame,
  openFrameHarness,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const rules = 'attachments:\n  types: [image, text]\n  maxCount: 2\n  maxBytes: 100000\n'
const local = `${helper}${rules}`
const stored = `${keeper}${rules}`

let harness: FrameHarness
let keeping: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness({}, local)
  keeping = await openFrameHarness({}, stored)
})
afterAll(async () => {
  await harness?.close()
  await keeping?.close()
})

/** Draws an image of this size in the frame; the noise makes it large. */
async function drawImage({ frame }: OpenFrame, side: number, type = 'image/png'): Promise<Buffer> {
  const base64 = await frame.evaluate(
    async ([length, mediaType]) => {
      const canvas = new OffscreenCanvas(length, length)
      const context = canvas.getContext('2d') as OffscreenCanvasRenderingContext2D
      const pixels = context.createImageData(length, length)
      let seed = 1
      for (let at = 0; at < pixels.data.length; at += 1) {
        seed = (seed * 48_271) % 2_147_483_647
        pixels.data[at] = at % 4 === 3 ? 255 : seed % 256
      }
      context.putImageData(pixels, 0, 0)
      const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: mediaType })).arrayBuffer())
      return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    },
    [side, type] as const,
  )
  return Buffer.from(base64, 'base64')
}

async function choose({ frame }: OpenFrame, ...files: { name: string; mimeType: string; buffer: Buffer }[]) {
  await frame.locator('input[type=file]').setInputFiles(files)
}

const note = { name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('Remember the milk.') }

async function open(given: FrameHarness, options: Parameters<FrameHarness['open']>[0] = {}) {
  const opened = await given.open({ isSameSite: true, ...options })
  await opened.post({ type: 'visibility', isOpen: true })
  await opened.frame.getByRole('button', { name: 'Attach files' }).waitFor()
  return opened
}

/** Pastes or drops the image into the message input. */
async function give({ frame }: OpenFrame, event: 'paste' | 'drop', image: Buffer): Promise<void> {
  await frame.evaluate(
    ([kind, base64]) => {
      const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
      const transfer = new DataTransfer()
      transfer.items.add(new File([bytes], 'a.png', { type: 'image/png' }))
      const init = { bubbles: true, cancelable: true }
      const area = document.querySelector('textarea')
      area?.dispatchEvent(
        kind === 'paste'
          ? new ClipboardEvent('paste', { ...init, clipboardData: transfer })
          : new DragEvent('drop', { ...init, dataTransfer: transfer }),
      )
    },
    [event, image.toString('base64')] as const,
  )
}

const thumbnails = ({ frame }: OpenFrame) => frame.locator('.composer .attachment img')

describe('a message with attachments', () => {
  test('sends images and text files as parts, shows them, and keeps them after a reload', async () => {
    const opened = await open(harness)
    const image = await drawImage(opened, 20)
    await choose(opened, { name: 'a.png', mimeType: 'image/png', buffer: image }, note)
    await thumbnails(opened).waitFor()
    await visibleText(opened.frame, 'note.txt').waitFor()
    expect(await listAxeFaults(opened.frame)).toEqual([])
    const request = opened.page.waitForRequest('**/trpc/chat.stream*')
    await opened.say('Look.')
    expect(JSON.parse((await request).postData() ?? '')[0].json.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look.' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${image.toString('base64')}` } },
          { type: 'text', text: '[Attached file: note.txt]\nRemember the milk.' },
        ],
      },
    ])
    await opened.settle()
    expect(await thumbnails(opened).count()).toBe(0)
    await opened.frame.locator('article.user img').waitFor()
    expect(await listAxeFaults(opened.frame)).toEqual([])
    await vi.waitFor(async () =>
      expect(await opened.frame.evaluate(() => JSON.stringify(localStorage))).toContain('image/png'),
    )
    await opened.page.goto('about:blank')
    const again = await open(harness, { beside: opened })
    await again.frame.locator('article.user img').waitFor()
    expect(opened.complaints).toEqual([])
  })

  test.each(['paste', 'drop'] as const)(
    'accepts an image by %s, which the visitor can remove',
    async (event) => {
      const opened = await open(harness)
      await give(opened, event, await drawImage(opened, 20))
      await thumbnails(opened).waitFor()
      await opened.frame.getByRole('button', { name: 'Remove Image' }).click()
      await thumbnails(opened).waitFor({ state: 'detached' })
      expect(opened.complaints).toEqual([])
    },
  )

  test('is stored on the server, which returns its image after a reload', async () => {
    const opened = await open(keeping)
    const image = await drawImage(opened, 150)
    await choose(opened, { name: 'a.png', mimeType: 'image/png', buffer: image })
    await thumbnails(opened).waitFor()
    await opened.frame.locator('textarea').press('Enter')
    await opened.frame.locator('article.user img').waitFor()
    await opened.settle()
    await opened.page.goto('about:blank')
    const again = await open(keeping, { beside: opened })
    const shown = again.frame.locator('article.user img')
    expect(await shown.getAttribute('src')).toBe(`data:image/png;base64,${image.toString('base64')}`)
    expect(again.complaints).toEqual([])
  })

  test("contains large images scaled down to the agent's limit", async () => {
    const opened = await open(harness)
    await choose(opened, {
      name: 'large.png',
      mimeType: 'image/png',
      buffer: await drawImage(opened, 900),
    })
    const src = (await thumbnails(opened).getAttribute('src')) ?? ''
    expect(src).toMatch(/^data:image\/jpeg;base64,/)
    expect(Buffer.from(src.split(',')[1] ?? '', 'base64').length).toBeLessThanOrEqual(100_000)
  })

  test('rejects a file that the agent does not accept and explains why', async () => {
    const opened = await open(harness)
    const alert = opened.frame.locator('.composer [role=alert]')
    await choose(opened, { name: 'a.pdf', mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.7') })
    await alert.getByText('This assistant cannot read a.pdf.').waitFor()
    await choose(opened, { ...note, buffer: Buffer.alloc(100_001, 'a') })
    await alert.getByText('note.txt is too large (limit: 98 kB).').waitFor()
    await choose(opened, note, note, note)
    await alert.getByText('A message can have at most 2 attachments.').waitFor()
  })
})
