/** Tests that the widget frame ignores forged, malformed and repeated messages. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type FrameHarness,
  type HostPage,
  type OpenFrame,
  openFrameHarness,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness()
})
afterAll(() => harness?.close())

/** Posts a title change and waits for it, so that all earlier messages have been handled. */
async function passMarker(opened: OpenFrame): Promise<void> {
  const apiKey = harness.agent.agent_key
  await opened.post({
    type: 'configure',
    options: {
      apiKey,
      theme: 'light',
      primaryColor: '#000',
      debug: false,
      history: true,
      isInline: false,
      title: 'Marker',
    },
  })
  await opened.frame.getByRole('heading', { name: 'Marker' }).waitFor()
}

describe('a window message', () => {
  test('from the host page does not open a second channel', async () => {
    const opened = await harness.open()
    const answers = await opened.page.evaluate((origin) => {
      const here = globalThis as unknown as HostPage
      const target = (document.querySelector('iframe') as HTMLIFrameElement).contentWindow as Window
      const heard: unknown[] = []
      addEventListener('message', ({ data }) => heard.push(data))
      const base = { protocol: 'parley/1', session: here.session }
      target.postMessage({ ...base, type: 'page-hello' }, origin)
      target.postMessage({ ...base, type: 'page-hello', session: 'another' }, origin)
      for (const session of [here.session, 'another', 7]) {
        const { port1, port2 } = new MessageChannel()
        port1.onmessage = ({ data }) => heard.push(data)
        target.postMessage({ ...base, session, type: 'port' }, origin, [port2])
        port1.postMessage({ type: 'configure', options: { title: 'Forged' } })
      }
      target.postMessage({ type: 'configure', options: { title: 'Forged' } }, origin)
      return new Promise<unknown[]>((resolve) => setTimeout(() => resolve(heard)))
    }, harness.app.url)
    await passMarker(opened)
    expect(answers).toEqual([])
    expect(opened.complaints).toEqual([])
  })

  test('from another origin has no effect', async () => {
    const opened = await harness.open()
    const attackers = await Promise.all([1, 2, 3].map(() => startAttacker(harness.app.url)))
    await opened.page.evaluate(
      async (urls) => {
        for (const url of urls) {
          const frame = document.createElement('iframe')
          const loaded = new Promise((resolve) => frame.addEventListener('load', resolve))
          frame.src = url
          document.body.append(frame)
          await loaded
        }
      },
      attackers.map(({ url }) => url),
    )
    for (const frame of opened.page.frames().slice(2)) {
      // Polls by time, because there are no animation frames in an iframe that is out of view.
      const hasTried = () => (globalThis as unknown as { tried?: boolean }).tried
      await frame.waitForFunction(hasTried, undefined, { polling: 50 })
      expect(await frame.evaluate(() => (globalThis as unknown as { heard: unknown[] }).heard)).toEqual([])
    }
    await passMarker(opened)
    expect(await opened.frame.getByText('Forged').count()).toBe(0)
    for (const { close } of attackers) close()
  })

  test('from a page with an opaque origin receives no reply', async () => {
    const page = await (await harness.browser.newContext()).newPage()
    await page.goto(harness.hostUrl)
    const heard = await page.evaluate(
      (origin) =>
        new Promise<unknown[]>((resolve) => {
          const messages: unknown[] = []
          addEventListener('message', ({ data }) => {
            if (data === 'done') resolve(messages)
            else messages.push(data)
          })
          const frame = document.createElement('iframe')
          frame.sandbox.add('allow-scripts')
          frame.srcdoc = `<script>
            const inner = document.createElement('iframe'); inner.src = '${origin}/embed/frame'
            addEventListener('message', (event) => parent.postMessage(event.data, '*'))
            inner.onload = () => {
              inner.contentWindow.postMessage({ protocol: 'parley/1', type: 'page-hello', session: 's' }, '*')
              setTimeout(() => parent.postMessage('done', '*'), 500)
            }
            document.documentElement.append(inner)</script>`
          document.body.append(frame)
        }),
      harness.app.url,
    )
    expect(heard).toEqual([])
  })
})

describe('a port message', () => {
  test('is ignored if it is malformed', async () => {
    const opened = await harness.open()
    await opened.say('before')
    await opened.settle()
    const html = () => opened.frame.locator('.window').innerHTML()
    await opened.frame.getByRole('heading', { name: 'Helping hand' }).waitFor()
    await opened.frame.getByRole('status').getByText('The answer is complete.').waitFor()
    const before = await html()
    const good = { theme: 'light', primaryColor: '#fff', debug: false, history: true, isInline: false }
    const forged: unknown[] = [
      null,
      'configure',
      7,
      [],
      {},
      { type: 'configure' },
      { type: 'configure', options: { ...good, title: 7 } },
      { type: 'configure', options: { ...good, theme: 'pink' } },
      { type: 'configure', options: { ...good, headers: [] } },
      { type: 'configure', options: [] },
      { type: 'configure', options: { ...good, title: 'x'.repeat(300_000) } },
      { type: 'visibility', isOpen: 'yes' },
      { type: 'context', context: [] },
      { type: '__proto__' },
      { type: 'constructor' },
      { type: 'mcp', message: 'x' },
      {
        type: 'mcp',
        message: { jsonrpc: '2.0', id: 'unasked', result: { tools: [{ name: 'postMessage_x' }] } },
      },
      { type: 'mcp', message: { jsonrpc: '2.0', id: 1, method: 'sampling/createMessage', params: {} } },
    ]
    await opened.page.evaluate((messages) => {
      const { port } = globalThis as unknown as HostPage
      for (const message of messages) port.postMessage(message)
      const round: { self?: unknown; type: string } = { type: 'focus' }
      round.self = round
      port.postMessage(round)
    }, forged)
    // Messages arrive in order: when this one takes effect, the frame has ignored all earlier ones.
    await opened.post({ type: 'focus' })
    await opened.frame.locator('textarea:focus').waitFor()
    expect(await html()).toBe(before)
    expect(opened.complaints).toEqual([])
    await passMarker(opened)
  })
})

/** Serves a page on another origin that posts forged messages to its parent and sibling frames. */
async function startAttacker(target: string): Promise<{ url: string; close: () => void }> {
  const script = `
    window.heard = []
    addEventListener('message', (event) => event.origin === '${target}' && heard.push(event.data))
    const base = { protocol: 'parley/1', session: 'session-1' }
    for (const other of [parent, ...Array.from({ length: parent.frames.length }, (_, index) => parent.frames[index])]) {
      other.postMessage({ ...base, type: 'page-hello' }, '*')
      const channel = new MessageChannel()
      channel.port1.onmessage = (event) => heard.push(event.data)
      other.postMessage({ ...base, type: 'port' }, '*', [channel.port2])
      channel.port1.postMessage({ type: 'configure', options: { title: 'Forged' } })
      other.postMessage({ ...base, type: 'frame-hello' }, '${target}')
    }
    setTimeout(() => { tried = true }, 100); var tried = false`
  const server = createServer((_request, response) =>
    response
      .setHeader('Content-Type', 'text/html')
      .end(`<!doctype html><title>x</title><script>${script}</script>`),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => server.close(),
  }
}
