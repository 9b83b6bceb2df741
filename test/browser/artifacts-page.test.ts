/** Tests that an artifact's status page shows its progress and result in a browser, under the page's CSP. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Updateable } from 'kysely'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { ArtifactTable } from '../../src/db/tables.ts'
import { serviceActor } from '../../src/identity/audit.ts'
import { revokeParentKey } from '../../src/identity/keys.ts'
import { openApp, startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { ffmpeg, makeVideo } from '../support/conversion.ts'
import { makeFolder } from '../support/process.ts'
import { createUpload, patchUpload, uploadWhole, waitForState } from '../support/uploads.ts'
import {
  measureOverflow,
  openPage,
  readRow,
  reserveArtifact,
  saveScreenshots,
  setArtifact,
  setConverted,
  statusPagePath,
} from '../support/watch.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })
const within = { timeout: 20_000 }

let browser: Browser
let video: Buffer
let picture: Buffer

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'parley-page-'))
  const still = join(folder, 'still.jpg')
  await ffmpeg('-f', 'lavfi', '-i', 'testsrc2=size=640x360', '-frames:v', '1', still)
  video = await readFile(await makeVideo(join(folder, 'clip.mp4')))
  picture = await readFile(still)
  await rm(folder, { recursive: true })
  browser = await launchBrowser()
})

afterAll(async () => {
  await browser?.close()
})

const barOf = (page: Page) => page.locator('progress')
const saysOf = (page: Page) => page.locator('[data-piece=says]')

async function untilPlayable(page: Page): Promise<void> {
  const player = page.locator('video')
  await expect
    .poll(() => player.evaluate((element) => (element as HTMLVideoElement).readyState), within)
    .toBeGreaterThan(0)
}

/** Uploads an image; returns row values that make it the poster of another artifact. */
async function uploadPoster(app: TestApp): Promise<Updateable<ArtifactTable>> {
  const { id } = await uploadWhole(app, picture, { metadata: { filename: 'still.jpg', kind: 'thumbnail' } })
  const { served_blob, served_bytes } = await readRow(app, id)
  return { poster_blob: served_blob, poster_bytes: served_bytes }
}

describe('the status page', () => {
  test('updates the progress bar and then shows the video', async () => {
    const app = await startApp()
    const reserved = await reserveArtifact(app)
    const { artifact_id: artifactId } = reserved
    const { page, complaints } = await openPage(browser, app.url + statusPagePath(reserved))
    await saveScreenshots(page, 'unknown')
    const name = 'Landing on the moon'
    const upload = await createUpload(app, { size: video.length, metadata: { artifactId, name } })
    await barOf(page).waitFor(within)
    expect(await page.locator('h1').innerText()).toBe(name)
    for (const share of [0.3, 0.6]) {
      const [from, to] = [Math.floor((share - 0.3) * video.length), Math.floor(share * video.length)]
      await patchUpload(app, upload, from, video.subarray(from, to))
      const percent = String(Math.floor((to / video.length) * 100))
      await expect.poll(() => page.locator('#percent').innerText(), within).toBe(percent)
      expect(await barOf(page).evaluate((bar) => (bar as HTMLProgressElement).value)).toBeCloseTo(share, 1)
      expect(await page.title()).toBe(`${percent} % · ${name}`)
    }
    await saveScreenshots(page, 'uploading')
    const other = await readRow(app, (await uploadWhole(app, video)).id)
    await setArtifact(app, artifactId, { state: 'processing', progress_permille: 256 })
    await expect.poll(() => saysOf(page).innerText(), within).toBe('Preparing')
    expect(await page.locator('#percent').innerText()).toBe('25')
    await saveScreenshots(page, 'processing')
    const { served_blob, served_bytes } = other
    const served = { state: 'ready', served_blob, served_bytes, acknowledged: 1 } as const
    await setConverted(app, artifactId, 'video/mp4', served)
    await untilPlayable(page)
    expect(await saysOf(page).innerText()).toBe('Ready')
    expect(complaints).toEqual([])
  })

  test('shows the video with its poster and does not reload it when another field changes', async () => {
    const app = await startApp()
    const reserved = await reserveArtifact(app)
    const metadata = { artifactId: reserved.artifact_id, name: 'Landing on the moon' }
    const { id } = await uploadWhole(app, video, { metadata })
    await setConverted(app, id, 'video/mp4', { ...(await uploadPoster(app)), acknowledged: 0 })
    const { page, complaints } = await openPage(browser, app.url + statusPagePath(reserved))
    await untilPlayable(page)
    await saveScreenshots(page, 'video')
    await page.locator('video').evaluate((element) => element.setAttribute('data-mine', 'yes'))
    await setArtifact(app, reserved.artifact_id, { acknowledged: 1 })
    await page.getByText('has received the upload').waitFor(within)
    expect(await page.locator('video').getAttribute('data-mine')).toBe('yes')
    expect(complaints).toEqual([])
  })

  test('shows images and captions and offers other files as downloads', async () => {
    const app = await startApp()
    const one = await uploadWhole(app, picture, { metadata: { filename: 'still.jpg', kind: 'thumbnail' } })
    await setConverted(app, one.id, 'image/jpeg')
    const text = Buffer.from('WEBVTT\n\n00:01.000 --> 00:02.500\n<b>Houston</b>, the Eagle has landed.\n')
    const two = await uploadWhole(app, text, { metadata: { filename: 'a.vtt', kind: 'captions' } })
    await setConverted(app, two.id, 'text/vtt')
    const three = await uploadWhole(app, Buffer.from('?'), { metadata: { filename: 'x.bin' } })
    const reason = { conversion_result: 'original', conversion_reason: 'This is not a video.' } as const
    await setArtifact(app, three.id, reason)
    const grantOf = ({ id }: { id: string }) => ({
      artifact_id: id,
      view_token: app.service.deps.tokens.mint({
        artifactId: id,
        use: 'view',
        tenantId: app.key.slice(4, 16),
        expiresAt: 4_000_000_000,
      }),
      upload_token: '',
    })
    const first = await openPage(browser, app.url + statusPagePath(grantOf(one)))
    const image = first.page.locator('img')
    await expect
      .poll(() => image.evaluate((element) => (element as HTMLImageElement).naturalWidth), within)
      .toBe(640)
    await saveScreenshots(first.page, 'picture')
    const second = await openPage(browser, app.url + statusPagePath(grantOf(two)))
    expect(await second.page.locator('pre').innerText()).toContain('<b>Houston</b>')
    await saveScreenshots(second.page, 'captions')
    const third = await openPage(browser, app.url + statusPagePath(grantOf(three)))
    await saveScreenshots(third.page, 'file')
    const [download] = await Promise.all([
      third.page.waitForEvent('download'),
      third.page.getByText('Download').click(),
    ])
    expect(download.suggestedFilename()).toBe('x.bin')
    for (const { complaints } of [first, second, third]) expect(complaints).toEqual([])
  })

  test('reports that the artifact was deleted', async () => {
    const app = await startApp()
    const reserved = await reserveArtifact(app)
    const upload = await createUpload(app, { metadata: { artifactId: reserved.artifact_id } })
    const { page, complaints } = await openPage(browser, app.url + statusPagePath(reserved))
    await barOf(page).waitFor(within)
    await app.call('DELETE', `/artifacts/${upload.id}`)
    await page.getByText('Upload not found').waitFor(within)
    expect(await barOf(page).count()).toBe(0)
    await saveScreenshots(page, 'gone')
    expect(complaints).toEqual([])
  })

  test('reports that the URL is no longer valid after the parent key is revoked', async () => {
    const app = await startApp()
    const reserved = await reserveArtifact(app)
    const { page } = await openPage(browser, app.url + statusPagePath(reserved))
    await page.getByText('Nothing here yet').waitFor(within)
    await revokeParentKey(app.service.deps, serviceActor, app.key.slice(4, 16))
    await page.getByText('Invalid link').waitFor(within)
    await saveScreenshots(page, 'refused')
    expect(await page.locator('main').getAttribute('data-followed')).toBe('no')
  })

  test('reports that the server is unreachable and continues when the server is back', async () => {
    const env = { PARLEY_DATA_DIR: await makeFolder() }
    const before = await openApp(env)
    const reserved = await reserveArtifact(before)
    const upload = await createUpload(before, { metadata: { artifactId: reserved.artifact_id } })
    const { page } = await openPage(browser, before.url + statusPagePath(reserved))
    await barOf(page).waitFor(within)
    await before.close()
    await page.getByText('The server cannot be reached').waitFor(within)
    await saveScreenshots(page, 'away')
    const { port } = new URL(before.url)
    const after = await startApp({ ...env, PORT: port, PARLEY_PARENT_KEY: before.key })
    await page.getByText('The server cannot be reached').waitFor({ state: 'hidden', ...within })
    await patchUpload(after, upload, 0, Buffer.from('01234'))
    await expect.poll(() => page.locator('#percent').innerText(), within).toBe('50')
  })

  test('still updates the progress when the limit on open streams is reached', async () => {
    const app = await startApp({ PARLEY_MAX_STREAMS_ADDRESS: '1' })
    const reserved = await reserveArtifact(app)
    const upload = await createUpload(app, { metadata: { artifactId: reserved.artifact_id } })
    const opened = [1, 2].map(() => openPage(browser, app.url + statusPagePath(reserved)))
    const pages = (await Promise.all(opened)).map(({ page }) => page)
    await patchUpload(app, upload, 0, Buffer.from('01234'))
    for (const page of pages) await expect.poll(() => page.locator('#percent').innerText(), within).toBe('50')
    for (const page of pages) expect(await page.locator('#away').isVisible()).toBe(false)
  })

  test('reloads itself to show the result when JavaScript is disabled', async () => {
    const app = await startApp()
    const reserved = await reserveArtifact(app)
    const metadata = { artifactId: reserved.artifact_id, kind: 'thumbnail' }
    const upload = await createUpload(app, { size: picture.length, metadata })
    const address = app.url + statusPagePath(reserved)
    const { page, complaints } = await openPage(browser, address, { javaScriptEnabled: false })
    expect(await page.locator('#percent').innerText()).toBe('0')
    await patchUpload(app, upload, 0, picture)
    await waitForState(app, upload.id, 'ready')
    await setConverted(app, upload.id, 'image/jpeg')
    await page.locator('img').waitFor(within)
    expect(complaints).toEqual([])
  })
})

test('a malicious artifact name is shown as text and fits on a phone screen', async () => {
  const app = await startApp()
  const reserved = await reserveArtifact(app)
  const name = `<img src=x onerror=alert(1)>\u202e${'🂡W'.repeat(240)}`
  await createUpload(app, { metadata: { artifactId: reserved.artifact_id, name } })
  const { page, complaints } = await openPage(browser, app.url + statusPagePath(reserved))
  await barOf(page).waitFor(within)
  expect(await page.locator('bdi').textContent()).toBe(name)
  expect(await measureOverflow(page)).toBe(0)
  await saveScreenshots(page, 'hostile')
  expect(complaints).toEqual([])
})

test('the status page shows the number of received bytes of an upload with unknown length', async () => {
  const app = await startApp()
  const reserved = await reserveArtifact(app)
  const upload = await createUpload(app, { size: 'deferred', metadata: { artifactId: reserved.artifact_id } })
  const { page, complaints } = await openPage(browser, app.url + statusPagePath(reserved))
  await page.getByText('0 bytes so far').waitFor(within)
  await patchUpload(app, upload, 0, Buffer.from('0123456789'))
  await page.getByText('10 bytes so far').waitFor(within)
  await saveScreenshots(page, 'endless')
  expect(complaints).toEqual([])
})
