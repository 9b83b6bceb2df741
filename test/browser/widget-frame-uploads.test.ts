/** Tests how visitors upload larger files in the widget frame, with a proxy that cuts the connections. */
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { listAxeFaults } from '../support/axe.ts'
import { CuttingProxy, type CuttingProxyOptions } from '../support/cutting-proxy.ts'
import { makeFolder } from '../support/process.ts'
import { readArtifact } from '../support/uploads.ts'
import {
  keeper,
  type OpenFrame,
  openFrame,
  openFrameHarness,
  openFramePages,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

const MEGABYTE = 1024 * 1024
const bytes = Buffer.concat([Buffer.from('504b0304140000000000', 'hex'), randomBytes(6 * MEGABYTE)])
const rules = `attachments:
  types: [text]
  maxCount: 2
  uploads:
    types: [archive]
    maxBytes: ${7 * MEGABYTE}
`

/** A server that no process listens on. */
const nowhere = 'http://127.0.0.1:9'

async function start(
  points: readonly number[] = [],
  onPoint: CuttingProxyOptions['onPoint'] = () => 'reset',
) {
  const harness = await openFrameHarness({}, keeper + rules)
  onTestFinished(() => harness.close())
  const proxy = await CuttingProxy.open(harness.app.url, { points, onPoint })
  onTestFinished(() => proxy.close())
  const { browser, hostUrl, close } = await openFramePages(proxy.url)
  onTestFinished(close)
  const open = async (beside?: OpenFrame) => {
    const parts = { key: harness.agent.agent_key, browser, hostUrl }
    const opened = await openFrame(parts, { isSameSite: true, ...(beside !== undefined && { beside }) })
    await opened.post({ type: 'visibility', isOpen: true })
    await opened.frame.getByRole('button', { name: 'Attach files' }).waitFor()
    return opened
  }
  const path = join(await makeFolder(), 'logs.zip')
  await writeFile(path, bytes)
  const choose = ({ frame }: OpenFrame) => frame.locator('input[type=file]').setInputFiles(path)
  return { app: harness.app, proxy, open, choose }
}

const button = ({ frame }: OpenFrame, name: string) => frame.getByRole('button', { name, exact: true })
const complete = ({ frame }: OpenFrame) =>
  frame.locator('.composer .attachments').getByText('logs.zip').waitFor()

/** Sends the message with the upload, and returns the file that the server has stored. */
async function send({ app }: Pick<Awaited<ReturnType<typeof start>>, 'app'>, opened: OpenFrame) {
  await opened.say('Look.')
  await opened.frame.locator('article.user').getByText('logs.zip').waitFor()
  await opened.settle()
  const { body } = await app.call('GET', '/v1/artifacts?state=ready')
  expect(body.data).toHaveLength(1)
  return readArtifact(app, body.data[0].artifactId)
}

test('a visitor can pause an upload while offline, continue it and send it, using controls without accessibility violations', async () => {
  const held = Promise.withResolvers<string>()
  const started = await start([2 * MEGABYTE], () => {
    started.proxy.forwardTo(held.promise)
    return 'reset'
  })
  const opened = await started.open()
  await started.choose(opened)
  await vi.waitFor(() => expect(started.proxy.passedPoints).toBe(1), 30_000)
  const pause = button(opened, 'Pause the upload of logs.zip')
  expect(await opened.frame.getByRole('progressbar', { name: 'Uploading logs.zip' }).isVisible()).toBe(true)
  expect(await opened.frame.locator('.main-button').getAttribute('aria-disabled')).toBe('true')
  expect(await listAxeFaults(opened.frame)).toEqual([])
  await pause.focus()
  await opened.page.keyboard.press('Enter')
  await visibleText(opened.frame, 'Paused').waitFor()
  expect(await listAxeFaults(opened.frame)).toEqual([])
  held.resolve(started.app.url)
  expect(
    await button(opened, 'Continue the upload of logs.zip').evaluate((one) => one.matches(':focus')),
  ).toBe(true)
  await opened.page.keyboard.press('Enter')
  await complete(opened)
  expect((await send(started, opened)).equals(bytes)).toBe(true)
})

test('an upload resumes automatically after lost connections', async () => {
  const started = await start([MEGABYTE, 3 * MEGABYTE, 5 * MEGABYTE])
  const opened = await started.open()
  await started.choose(opened)
  await complete(opened)
  expect(started.proxy.passedPoints).toBe(3)
  expect((await send(started, opened)).equals(bytes)).toBe(true)
})

test('a visitor can retry an upload after the server was unreachable', async () => {
  const started = await start([2 * MEGABYTE], () => {
    started.proxy.forwardTo(Promise.resolve(nowhere))
    return 'reset'
  })
  const opened = await started.open()
  await started.choose(opened)
  await visibleText(opened.frame, 'Connection lost').waitFor()
  started.proxy.forwardTo(Promise.resolve(started.app.url))
  await button(opened, 'Upload logs.zip again').click()
  await complete(opened)
  expect((await send(started, opened)).equals(bytes)).toBe(true)
})

test('an upload continues after a reload, when the visitor chooses the same file again', async () => {
  const held = Promise.withResolvers<string>()
  const started = await start([3 * MEGABYTE], () => {
    started.proxy.forwardTo(held.promise)
    return 'reset'
  })
  const opened = await started.open()
  await started.choose(opened)
  await vi.waitFor(() => expect(started.proxy.passedPoints).toBe(1), 30_000)
  await opened.page.goto('about:blank')
  held.resolve(started.app.url)
  const again = await started.open(opened)
  await started.choose(again)
  await complete(again)
  expect(again.requests.filter((url) => url.endsWith('/upload'))).toEqual([])
  expect((await send(started, again)).equals(bytes)).toBe(true)
})

test('a removed upload is deleted on the server', async () => {
  const held = Promise.withResolvers<string>()
  const started = await start([2 * MEGABYTE], () => {
    started.proxy.forwardTo(held.promise)
    return 'reset'
  })
  const opened = await started.open()
  await started.choose(opened)
  await vi.waitFor(() => expect(started.proxy.passedPoints).toBe(1), 30_000)
  await button(opened, 'Remove logs.zip').click()
  await opened.frame.locator('.transfer').waitFor({ state: 'detached' })
  held.resolve(started.app.url)
  await vi.waitFor(
    async () => expect((await started.app.call('GET', '/v1/artifacts')).body.data).toEqual([]),
    30_000,
  )
})

test('a complete upload that the visitor removes is deleted on the server', async () => {
  const started = await start()
  const opened = await started.open()
  await started.choose(opened)
  await complete(opened)
  expect((await started.app.call('GET', '/v1/artifacts')).body.data).toHaveLength(1)
  await button(opened, 'Remove logs.zip').click()
  await vi.waitFor(
    async () => expect((await started.app.call('GET', '/v1/artifacts')).body.data).toEqual([]),
    30_000,
  )
})

test('the widget names the limit that a rejected file exceeds', async () => {
  const started = await start()
  const opened = await started.open()
  const input = opened.frame.locator('input[type=file]')
  const mimeType = 'application/zip'
  await input.setInputFiles({ name: 'big.zip', mimeType, buffer: Buffer.alloc(7 * MEGABYTE + 1, 0xff) })
  await visibleText(opened.frame, 'big.zip is too large (limit: 7 MB).').waitFor()
  await input.setInputFiles({ name: 'tool.exe', mimeType, buffer: Buffer.alloc(100, 0xff) })
  await visibleText(opened.frame, 'This assistant cannot read tool.exe.').waitFor()
  expect(opened.requests.filter((url) => url.includes('/upload'))).toEqual([])
})
