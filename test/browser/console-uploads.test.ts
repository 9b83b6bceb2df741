/** Tests uploads and files in the console, including pauses, page reloads and playback. */
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { expectPlayback, rowOf } from '../support/console-parts.ts'
import { openConsole } from '../support/console-ui.ts'
import { expectView } from '../support/console-views.ts'
import { ffmpeg, h264, makeVideo } from '../support/conversion.ts'
import { createManualClock } from '../support/jobs.ts'
import { uploadWhole } from '../support/uploads.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 120_000 })

/** The size in bytes of each part that the console uploads. */
const PART_BYTES = 8 * 1024 * 1024

let browser: Browser
let folder: string
let clip: string
let still: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-console-'))
  still = join(folder, 'still.jpg')
  await ffmpeg('-f', 'lavfi', '-i', 'testsrc2=size=640x360', '-frames:v', '1', still)
  // Noise cannot be compressed well, so the video is larger than one part.
  const noise = 'nullsrc=size=640x360:rate=30:duration=2,geq=random(1)*255:128:128'
  clip = await makeVideo(join(folder, 'launch.mp4'), [...h264, '-qp', '0'], noise)
  expect((await stat(clip)).size).toBeGreaterThan(PART_BYTES * 1.2)
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  await rm(folder, { recursive: true })
})

const sending = (page: Page) => page.getByRole('region', { name: 'Uploads from this browser' })

describe('an upload in the console', () => {
  test('can be paused and resumed after a page reload, and the video then plays', async () => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/uploads')
    await page.getByText('No uploads yet').waitFor()
    await expectView(page, 'uploads-empty')
    let parts = 0
    // Holds back the second part until the test has paused the upload.
    await page.route('**/upload/*', async (route) => {
      if (route.request().method() === 'PATCH' && ++parts > 1) return
      await route.continue()
    })
    await page.getByLabel('Name').fill('The launch')
    await page.getByLabel('Files to upload').setInputFiles(clip)
    await expect.poll(() => parts, { timeout: 60_000 }).toBe(2)
    await sending(page)
      .getByText(/^Uploading \d+% of/)
      .waitFor()
    await page.getByRole('button', { name: 'Pause launch.mp4' }).click()
    await sending(page)
      .getByText(/^Paused \d+%/)
      .waitFor()
    await rowOf(page, 'The launch')
      .getByText(/^Uploading \d\d%$/)
      .waitFor()
    await expectView(page, 'uploads-paused')

    await page.unroute('**/upload/*')
    await page.reload()
    await sending(page)
      .getByText(/^Interrupted at \d\d%/)
      .waitFor()
    await expectView(page, 'uploads-interrupted')
    const offsets: string[] = []
    page.on('request', (request) => {
      if (request.method() === 'PATCH') offsets.push(request.headers()['upload-offset'] ?? '')
    })
    await page.getByLabel('Choose launch.mp4').setInputFiles(clip)
    await sending(page)
      .getByText(/^Uploaded/)
      .waitFor({ timeout: 60_000 })
    expect(offsets[0]).toBe(String(PART_BYTES))
    await rowOf(page, 'The launch').getByText('Ready', { exact: true }).waitFor({ timeout: 60_000 })
    await rowOf(page, 'The launch').getByRole('button', { name: 'The launch', exact: true }).click()
    await expectPlayback(page)
    await expectView(page, 'upload-video')
    expect(page.url()).toMatch(/artifact=[0-9a-f-]{36}/)
    expect(complaints).toEqual([])
  })

  test('of an image or of captions can be viewed, downloaded, moved to the bin and deleted forever', async () => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/uploads')
    const captions = join(folder, 'speech.vtt')
    await writeFile(captions, 'WEBVTT\n\n00:01.000 --> 00:02.500\nThe Eagle has landed.\n')
    await page.getByLabel('Files to upload').setInputFiles([still, captions])
    await rowOf(page, 'still.jpg').getByText('Ready', { exact: true }).waitFor({ timeout: 60_000 })
    await rowOf(page, 'speech.vtt').getByText('Ready', { exact: true }).waitFor({ timeout: 60_000 })
    expect(await rowOf(page, 'still.jpg').innerText()).toContain('Image')
    await rowOf(page, 'speech.vtt').getByRole('button', { name: 'speech.vtt', exact: true }).click()
    await page.getByRole('dialog').getByText('The Eagle has landed.').waitFor()
    await expectView(page, 'upload-captions')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await rowOf(page, 'still.jpg').getByRole('button', { name: 'still.jpg', exact: true }).click()
    const image = page.getByRole('img', { name: 'still.jpg' })
    await expect
      .poll(() => image.evaluate((one) => (one as HTMLImageElement).naturalWidth))
      .toBeGreaterThan(0)
    await expectView(page, 'upload-picture')
    const downloading = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Download' }).click()
    expect((await downloading).suggestedFilename()).toBe('still.jpg')
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await rowOf(page, 'still.jpg').waitFor({ state: 'detached' })
    expect(await rowOf(page, 'speech.vtt').count()).toBe(1)
    await page.getByRole('button', { name: 'Undo' }).click()
    await rowOf(page, 'still.jpg').getByRole('button', { name: 'still.jpg', exact: true }).click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await rowOf(page, 'still.jpg').waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Bin', exact: true }).click()
    await page.getByRole('tab', { name: 'Uploads' }).click()
    await page.getByRole('button', { name: 'Actions for still.jpg' }).click()
    await page.getByRole('menuitem', { name: 'Delete forever…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete forever' }).click()
    await page.getByText('The bin is empty').waitFor()
    expect((await app.call('GET', '/v1/bin/artifacts')).body.data).toEqual([])
    expect(complaints).toEqual([])
  })

  test('can be deleted from the list, alone or several at once, and restored', async () => {
    const app = await startApp()
    const { page, complaints } = await openConsole(app, browser, '/uploads')
    for (const name of ['one.vtt', 'two.vtt']) {
      await writeFile(join(folder, name), 'WEBVTT\n\n00:01.000 --> 00:02.500\nHello.\n')
      await page.getByLabel('Files to upload').setInputFiles(join(folder, name))
      await rowOf(page, name).getByText('Ready', { exact: true }).waitFor({ timeout: 60_000 })
    }
    await page.getByRole('button', { name: 'Actions for one.vtt' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await rowOf(page, 'one.vtt').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Undo' }).click()
    for (const name of ['one.vtt', 'two.vtt']) await rowOf(page, name).getByRole('checkbox').check()
    await expectView(page, 'uploads-selected')
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('Uploads moved to the bin').waitFor()
    await rowOf(page, 'two.vtt').waitFor({ state: 'detached' })
    expect((await app.call('GET', '/v1/bin/artifacts')).body.data).toHaveLength(2)
    await page.getByRole('button', { name: 'Undo' }).last().click()
    await rowOf(page, 'one.vtt').waitFor()
    await rowOf(page, 'two.vtt').waitFor()
    expect(complaints).toEqual([])
  })

  test('from another client appears on one of several pages and can be opened by its URL', async () => {
    const clock = createManualClock()
    const app = await startApp({}, { clock })
    const ids: string[] = []
    for (let count = 1; count <= 27; count++) {
      const metadata = { filename: `clip-${count}.bin`, kind: 'project' }
      ids.push((await uploadWhole(app, Buffer.from('0123456789'), { metadata })).id)
      // Gives each upload its own second, because the order within a second is undefined.
      clock.advance(1)
    }
    const { page } = await openConsole(app, browser, '/uploads')
    await rowOf(page, 'clip-27.bin').waitFor()
    expect(await rowOf(page, 'clip-2.bin').count()).toBe(0)
    await expectView(page, 'uploads')
    await page.getByRole('button', { name: 'Next' }).click()
    await rowOf(page, 'clip-1.bin').waitFor()
    expect(page.url()).toContain('after=')
    await page.reload()
    await rowOf(page, 'clip-2.bin').waitFor()
    await page.getByRole('button', { name: 'Previous' }).click()
    await rowOf(page, 'clip-27.bin').waitFor()
    await page.goto(`${app.url}/console/uploads?artifact=${ids[0]}`)
    const dialog = page.getByRole('dialog', { name: 'clip-1.bin' })
    await dialog.getByText('Project', { exact: true }).waitFor()
    await dialog.getByRole('link', { name: 'Download' }).waitFor()
    await page.goto(`${app.url}/console/uploads?artifact=00000000-0000-4000-8000-000000000000`)
    await page.getByText('Artifact not found').waitFor()
  })
})

async function createFile(app: TestApp, filename: string, content: string): Promise<void> {
  const form = new FormData()
  form.append('purpose', 'assistants')
  form.append('file', new Blob([content]), filename)
  const headers = { Authorization: `Bearer ${app.key}` }
  const { status } = await app.fetch(`${app.url}/v1/files`, { method: 'POST', headers, body: form })
  expect(status).toBe(200)
}

test('a user can list, download and delete files', async () => {
  const app = await startApp()
  const { page, complaints } = await openConsole(app, browser, '/files')
  await page.getByText('No files yet').waitFor()
  await expectView(page, 'files-empty')
  await createFile(app, 'notes.txt', 'hello')
  await createFile(app, 'prices.csv', 'a,b\n1,2\n')
  await page.reload()
  await rowOf(page, 'notes.txt').waitFor()
  await expectView(page, 'files')
  const downloading = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Actions for notes.txt' }).click()
  await page.getByRole('menuitem', { name: 'Download' }).click()
  expect((await downloading).suggestedFilename()).toBe('notes.txt')
  await page.getByRole('button', { name: 'Actions for notes.txt' }).click()
  await page.getByRole('menuitem', { name: 'Delete…' }).click()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await rowOf(page, 'notes.txt').waitFor({ state: 'detached' })
  expect((await app.call('GET', '/v1/files')).body.data).toHaveLength(1)
  expect(complaints).toEqual([])
})
