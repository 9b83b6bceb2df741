/** Tests how the console adds image files to an agent's theme. */
import type { Browser, Page } from 'playwright-core'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { startApp, type TestApp } from '../support/app.ts'
import { listAxeFaults } from '../support/axe.ts'
import { launchBrowser } from '../support/browser.ts'
import { openConsole } from '../support/console-ui.ts'
import { saveScreenshot } from '../support/screenshots.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser?.close())

async function openEmbed() {
  const app = await startApp()
  const { agent_id: id } = await app.createAgent('name: Guide\ninstructions: Help.\n')
  const opened = await openConsole(app, browser, `/agents/${id}/embed`)
  const form = opened.page.getByRole('region', { name: 'Appearance' })
  await form.getByRole('textbox', { name: 'Avatar' }).waitFor()
  return { app, id, form, ...opened }
}

interface ChosenFile {
  readonly name: string
  readonly mimeType: string
  readonly buffer: Buffer
}

const choose = (page: Page, field: string, file: ChosenFile) =>
  page.getByLabel(`Choose an image: ${field}`).setInputFiles(file)

/** Saves the theme; returns it as stored. */
async function saveTheme(app: TestApp, page: Page, id: string, version: number) {
  await page.getByRole('button', { name: 'Save to the agent' }).click()
  await expect.poll(async () => (await app.call('GET', `/v1/agents/${id}`)).body.version).toBe(version)
  return parse((await app.call('GET', `/v1/agents/${id}`)).body.yaml).embed?.theme
}

/** Returns an image of random pixels, which cannot be compressed. */
function makeNoise(width: number, height: number): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 128, sigma: 60 } as const
  const background = { r: 0, g: 0, b: 0 }
  return sharp({ create: { width, height, channels: 3, background, noise } })
    .png()
    .toBuffer()
}

const red = { create: { width: 40, height: 40, channels: 3, background: '#ff0000' } } as const

test('a small image becomes part of the definition unchanged, appears in the preview, and can be removed', async () => {
  const { app, id, form, page, complaints } = await openEmbed()
  const bytes = await sharp(red).png().toBuffer()
  await choose(page, 'Avatar', { name: 'avatar.png', mimeType: 'image/png', buffer: bytes })
  await form.getByText(`Image in the definition (${bytes.length} bytes)`).waitFor()
  const url = `data:image/png;base64,${bytes.toString('base64')}`
  expect(await saveTheme(app, page, id, 2)).toEqual({ avatar: url })
  const chat = page.locator('.preview-stage iframe').contentFrame()
  await page.locator('.preview-stage').evaluate((stage) => stage.scrollIntoView({ block: 'end' }))
  await chat.getByRole('button', { name: 'Open chat' }).click()
  const face = chat.locator('parley-chat iframe').contentFrame().locator('.face').first()
  await expect
    .poll(() => face.evaluate((element) => getComputedStyle(element).backgroundImage))
    .toContain(url)
  expect(await listAxeFaults(page)).toEqual([])
  await saveScreenshot(page, 'embed-image')
  await form.getByRole('button', { name: 'Remove image' }).click()
  expect(await form.getByRole('textbox', { name: 'Avatar' }).inputValue()).toBe('')
  expect(await saveTheme(app, page, id, 3)).toBeUndefined()
  expect(complaints).toEqual([])
})

test('a large photo is scaled until it fits, and keeps its proportions', async () => {
  const { app, id, form, page } = await openEmbed()
  const photo = await sharp(await makeNoise(1_200, 600))
    .jpeg()
    .toBuffer()
  expect(photo.length).toBeGreaterThan(100_000)
  await choose(page, 'Logo', { name: 'photo.jpg', mimeType: 'image/jpeg', buffer: photo })
  await form.getByText(/^Image in the definition \([\d.]+ kB\)$/).waitFor()
  const { logo } = (await saveTheme(app, page, id, 2)) as { logo: string }
  expect(logo.length).toBeLessThanOrEqual(32_768)
  expect(logo).toMatch(/^data:image\/webp;base64,/)
  const {
    format,
    width = 0,
    height,
  } = await sharp(Buffer.from(logo.split(',')[1] ?? '', 'base64')).metadata()
  expect([format, width]).toEqual(['webp', (height ?? 0) * 2])
  expect([256, 160, 96]).toContain(width)
})

test('text files, broken images and large drawings are rejected, and an error explains why', async () => {
  const { form, page, complaints } = await openEmbed()
  const alert = form.getByRole('alert')
  const code = page.getByRole('region', { name: 'Code' })
  const before = await code.innerText()
  const text = { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('hello') }
  await choose(page, 'Avatar', text)
  await alert.getByText('Choose a PNG, JPEG, WebP, GIF or SVG image.').waitFor()
  const broken = { name: 'broken.png', mimeType: 'image/png', buffer: Buffer.alloc(60_000, 7) }
  await choose(page, 'Avatar', broken)
  await alert.getByText('The image cannot be read. Choose another one.').waitFor()
  const drawing = `<svg xmlns="http://www.w3.org/2000/svg">${'<path d="M0 0"/>'.repeat(4_000)}</svg>`
  await choose(page, 'Avatar', { name: 'a.svg', mimeType: 'image/svg+xml', buffer: Buffer.from(drawing) })
  await alert.getByText(/^Choose an image of at most 24\.6 kB \(got 64(\.\d)? kB\)/).waitFor()
  expect(await form.getByRole('textbox', { name: 'Avatar' }).inputValue()).toBe('')
  expect(await form.getByRole('textbox', { name: 'Avatar' }).getAttribute('aria-invalid')).toBe('true')
  expect(await code.innerText()).toBe(before)
  expect(await listAxeFaults(page)).toEqual([])

  const buffer = await sharp(red).webp().toBuffer()
  await choose(page, 'Avatar', { name: 'a.webp', mimeType: 'image/webp', buffer })
  await form.getByText(/^Image in the definition/).waitFor()
  expect(await alert.count()).toBe(0)
  expect(complaints).toEqual([])
})

test('the URL of an image can be entered, and an invalid one shows an error at the field', async () => {
  const { app, id, form, page } = await openEmbed()
  const field = form.getByRole('textbox', { name: 'Avatar' })
  await field.fill('javascript:alert(1)')
  await form.getByRole('alert').waitFor()
  expect(await field.getAttribute('aria-invalid')).toBe('true')
  expect(await page.getByRole('button', { name: 'Save to the agent' }).isDisabled()).toBe(true)
  await field.fill('https://images.example.org/avatar.png')
  await expect.poll(() => form.getByRole('alert').count()).toBe(0)
  expect(await saveTheme(app, page, id, 2)).toEqual({ avatar: 'https://images.example.org/avatar.png' })
})
