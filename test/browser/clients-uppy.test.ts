/** Tests uploads with Uppy in a browser page on another origin, with a token for a single upload. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { startApp, type TestApp } from '../support/app.ts'
import { launchBrowser } from '../support/browser.ts'
import { CuttingProxy } from '../support/cutting-proxy.ts'
import { readArtifact, readStatus, waitForState } from '../support/uploads.ts'
import { serveUppyPage, toPattern, type UppyWindow } from '../support/uppy-page.ts'

// Browsers are slow on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

const MIB = 1024 ** 2
const SIZE = 12 * MIB + 7

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser.close())

/** The upload parameters that the test passes to the browser page. */
interface Plan {
  readonly endpoint: string
  readonly token: string
  readonly artifactId: string
  readonly size: number
  readonly chunkSize: number
  /** The page pauses the upload after it has sent this number of bytes. */
  readonly pauseAt: number
}

async function reserve(app: TestApp, url = app.url): Promise<Plan> {
  const { body } = await app.call('POST', '/v1/artifacts', { body: {} })
  const { artifact_id: artifactId, upload_token: token } = body
  return {
    endpoint: `${url}/upload`,
    token,
    artifactId,
    size: SIZE,
    chunkSize: 2 * MIB,
    pauseAt: Number.MAX_SAFE_INTEGER,
  }
}

async function openPage(): Promise<Page> {
  const page = await browser.newPage()
  await page.goto(await serveUppyPage())
  return page
}

/** Starts an upload in the page, and stores the Uppy instance in `window.uppy`. */
async function begin(page: Page, plan: Plan): Promise<void> {
  await page.evaluate((plan) => {
    const { Uppy, Tus, createFile } = window as unknown as UppyWindow
    const uppy = new Uppy({ meta: { artifactId: plan.artifactId } })
    const { endpoint, token, chunkSize } = plan
    const headers = { Authorization: `Bearer ${token}` }
    uppy.use(Tus, { endpoint, headers, chunkSize, retryDelays: Array(20).fill(10) })
    const file = createFile(plan.size)
    uppy.addFile({ name: file.name, type: file.type, data: file })
    Object.assign(window, { uppy })
    const pauseOnce = (sending: { id: string } | undefined, { bytesUploaded }: { bytesUploaded: number }) => {
      if (bytesUploaded < plan.pauseAt) return
      uppy.off('upload-progress', pauseOnce)
      uppy.pauseResume(sending?.id as string)
    }
    uppy.on('upload-progress', pauseOnce)
    void uppy.upload()
  }, plan)
}

/** The globals that `begin` sets in the page. */
interface Uploading {
  readonly uppy: InstanceType<UppyWindow['Uppy']>
}

async function untilPaused(page: Page): Promise<void> {
  await page.waitForFunction(() => (window as unknown as Uploading).uppy.getFiles()[0]?.isPaused)
}

async function untilDone(page: Page): Promise<void> {
  await page.waitForFunction(() => {
    const [file] = (window as unknown as Uploading).uppy.getFiles()
    if (file?.error) throw new Error(file.error)
    return file?.progress.uploadComplete
  })
}

async function expectArrived(app: TestApp, { artifactId }: Plan): Promise<void> {
  await waitForState(app, artifactId, 'ready')
  expect((await readArtifact(app, artifactId)).equals(toPattern(SIZE))).toBe(true)
}

test('an Uppy upload arrives unchanged after a pause', async () => {
  const app = await startApp()
  const [page, plan] = [await openPage(), await reserve(app)]
  await begin(page, { ...plan, pauseAt: 3 * MIB })
  await untilPaused(page)
  expect((await readStatus(app, plan.artifactId)).state).toBe('uploading')
  await page.evaluate(() => (window as unknown as Uploading).uppy.resumeAll())
  await untilDone(page)
  await expectArrived(app, plan)
  await page.close()
})

test('an Uppy upload resumes automatically after lost connections', async () => {
  const app = await startApp()
  const proxy = await CuttingProxy.open(app.url, {
    points: [3, 5, 8, 10].map((mebibytes) => mebibytes * MIB),
    onPoint: (index) => (index % 2 === 0 ? 'reset' : 'end'),
  })
  onTestFinished(() => proxy.close())
  const [page, plan] = [await openPage(), await reserve(app, proxy.url)]
  await begin(page, { ...plan, chunkSize: SIZE })
  await untilDone(page)
  expect(proxy.passedPoints).toBe(4)
  await expectArrived(app, plan)
  await page.close()
})

test('an Uppy upload can be resumed after a page reload', async () => {
  const app = await startApp()
  const [page, plan] = [await openPage(), await reserve(app)]
  await begin(page, { ...plan, pauseAt: 3 * MIB })
  await untilPaused(page)
  await page.reload()
  const methods: string[] = []
  page.on('request', (request) => void methods.push(request.method()))
  await begin(page, plan)
  await untilDone(page)
  expect(methods.filter((method) => method !== 'OPTIONS')).toEqual(expect.arrayContaining(['HEAD', 'PATCH']))
  expect(methods).not.toContain('POST')
  await expectArrived(app, plan)
  await page.close()
})
