/**
 * Tests, in the widget frame, conversations that the server stores: answers, page tools and what the page
 * receives.
 */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  begins,
  greeting,
  openVisible,
  reopen,
  type StoredOptions,
  slow,
  storedIn as stored,
  textsOf,
  whole,
  words,
} from '../support/stored-frames.ts'
import { asVisitor } from '../support/visitors.ts'
import {
  expectOnly,
  type FrameHarness,
  keeper,
  type OpenFrame,
  openFrameHarness,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness({}, keeper)
})
afterAll(() => harness?.close())

const open = (options?: StoredOptions) => openVisible(harness, options)
const reload = (opened: OpenFrame, more?: StoredOptions) => reopen(harness, opened, more)

describe('a stored conversation', () => {
  test('leaves only the visitor token and the conversation id in the browser', async () => {
    const opened = await open()
    expect(await stored(opened)).toEqual({})
    await opened.say('a secret word')
    await visibleText(opened.frame, 'You said: a secret word').waitFor()
    await opened.settle()
    const kept = await stored(opened)
    expect(Object.keys(kept)).toEqual([`parley-visitor ${harness.agent.agent_key.slice(0, 21)}`])
    expect(JSON.parse(Object.values(kept)[0] ?? '')).toEqual({
      token: expect.stringMatching(/^vst_/),
      conversation: expect.stringMatching(/^conv_/),
    })
    expect(opened.complaints).toEqual([])
  })

  test('shows the rest of an answer after a page reload interrupts it', async () => {
    const opened = await open()
    await opened.say(slow)
    await begins(opened)
    const reloaded = await reload(opened)
    await begins(reloaded)
    await visibleText(reloaded.frame, whole).waitFor()
    await reloaded.settle()
    expect(await textsOf(reloaded)).toEqual([greeting, slow, whole])
    expect(reloaded.complaints).toEqual([])
  })

  test('shows the same answer in a second tab, without duplicate entries', async () => {
    const one = await open()
    await one.say(slow)
    await begins(one)
    const other = await open({ beside: one })
    for (const tab of [one, other]) {
      await visibleText(tab.frame, whole).waitFor()
      await tab.settle()
      expect(await textsOf(tab)).toEqual([greeting, slow, whole])
    }
    await other.say('and now me')
    for (const tab of [one, other]) {
      await visibleText(tab.frame, 'You said: and now me').waitFor()
      await tab.settle()
      expect(await textsOf(tab)).toEqual([greeting, slow, whole, 'and now me', 'You said: and now me'])
    }
  })

  test('appears in another tab that was open before the first message', async () => {
    const one = await open()
    const other = await open({ beside: one })
    await visibleText(other.frame, 'Hello! I am').waitFor()
    await one.say('in the first tab')
    await visibleText(other.frame, 'You said: in the first tab').waitFor()
  })

  test('shows the whole answer even if the network fails for a minute during the answer', async () => {
    const opened = await open()
    await opened.page.context().clock.install()
    const clocked = await reload(opened)
    await clocked.say(slow)
    await begins(clocked)
    const { conversation = '', token } = JSON.parse(Object.values(await stored(clocked))[0] ?? '{}')
    await clocked.page.context().setOffline(true)
    await clocked.frame.locator('.offline').waitFor()
    await clocked.page.context().clock.fastForward('01:00')
    const visitor = asVisitor(harness.app, harness.agent.agent_key, token)
    await expect.poll(async () => (await visitor.open.query({ conversation })).turn?.status).toBe('completed')
    await clocked.page.context().setOffline(false)
    await visibleText(clocked.frame, whole).waitFor()
    await clocked.settle()
    expect(await textsOf(clocked)).toEqual([greeting, slow, whole])
    expect(await clocked.frame.locator('.failure').count()).toBe(0)
  })

  test('accepts a message only once, even if the first response was lost', async () => {
    const opened = await open()
    let requests = 0
    await opened.page.route(
      '**/trpc/visitor.send*',
      async (route) => {
        requests += 1
        await route.fetch()
        await route.abort()
      },
      { times: 1 },
    )
    await opened.say('only once')
    await visibleText(opened.frame, 'cannot be reached').waitFor()
    await opened.frame.getByRole('button', { name: 'Try again' }).click()
    await visibleText(opened.frame, 'You said: only once').waitFor()
    await opened.settle()
    expect(requests).toBe(1)
    expect(await textsOf(opened)).toEqual([greeting, 'only once', 'You said: only once'])
    const reloaded = await reload(opened)
    await visibleText(reloaded.frame, 'You said: only once').waitFor()
    expect(await textsOf(reloaded)).toEqual([greeting, 'only once', 'You said: only once'])
  })

  test('sends a waiting message when the network is available again', async () => {
    const opened = await open()
    await visibleText(opened.frame, 'Hello! I am').waitFor()
    await opened.page.context().setOffline(true)
    await opened.frame.locator('.offline').waitFor()
    await opened.say('are you there')
    await visibleText(opened.frame, 'As soon as the connection is back').waitFor()
    await opened.page.context().setOffline(false)
    await visibleText(opened.frame, 'You said: are you there').waitFor()
    expect(await opened.frame.locator('.failure').count()).toBe(0)
  })

  test('queues a message that the visitor sends before the agent has loaded, and sends it afterwards', async () => {
    let release = () => {}
    const context = await harness.browser.newContext()
    await context.route('**/trpc/agents.me*', async (route) => {
      await new Promise<void>((resolve) => {
        release = resolve
      })
      await route.continue()
    })
    const page = await context.newPage()
    const opened = await open({ beside: { page } as OpenFrame })
    await opened.say('quick')
    await opened.frame.locator('article.user').waitFor()
    await expect.poll(() => stored(opened)).toEqual({})
    release()
    await visibleText(opened.frame, 'You said: quick').waitFor()
    await opened.settle()
    expect(Object.keys(await stored(opened))).toEqual([
      `parley-visitor ${harness.agent.agent_key.slice(0, 21)}`,
    ])
    expect(await textsOf(opened)).toEqual([greeting, 'quick', 'You said: quick'])
  })

  test('can be stopped and then continued', async () => {
    const opened = await open()
    const long = `[[delay:600]] ${words} the end`
    await opened.say(long)
    await begins(opened)
    await opened.frame.getByRole('button', { name: 'Stop' }).click()
    await visibleText(opened.frame, 'You stopped this answer.').waitFor()
    await opened.frame.getByRole('button', { name: 'Continue' }).click()
    expect(await opened.frame.evaluate(() => document.activeElement?.className)).toBe('scroller')
    await opened.frame.getByRole('button', { name: 'Continue' }).waitFor({ state: 'detached' })
    await opened.settle()
    const [, , answer = ''] = await textsOf(opened)
    expect(answer).toMatch(/^You said: one two.*You said: /)
    expect(answer).not.toContain('the end')
    const reloaded = await reload(opened)
    await expect.poll(() => textsOf(reloaded)).toEqual([greeting, long, answer])
  })

  test('shows a model failure, and the message is sent again when the visitor retries', async () => {
    const opened = await open()
    await opened.say('[[error:500]]')
    await opened.frame.getByText('not available right now').first().waitFor()
    expect(await opened.said()).toContainEqual(
      expect.objectContaining({ type: 'error', code: 'chat_failed' }),
    )
    const repeated = opened.page.waitForResponse('**/trpc/visitor.regenerate*')
    await opened.frame.getByRole('button', { name: 'Try again' }).click()
    await repeated
    await opened.frame.getByText('not available right now').first().waitFor()
    expect(await opened.frame.locator('article.user').count()).toBe(1)
  })

  test('counts an answer as unread while the window is closed', async () => {
    const opened = await open()
    await opened.say(slow)
    await begins(opened)
    await opened.post({ type: 'visibility', isOpen: false })
    await expect.poll(opened.said).toContainEqual({ type: 'unread', count: 1, label: '1 new message' })
  })
})

describe('page tools in a stored conversation', () => {
  const tools = [
    {
      name: 'postMessage_look',
      inputSchema: { type: 'object', properties: { where: { type: 'string' } } },
      annotations: { title: 'Look around' },
    },
    {
      name: 'postMessage_remove',
      inputSchema: { type: 'object' },
      annotations: { destructiveHint: true },
    },
  ]

  test('run only in the tab that sent the message', async () => {
    const one = await open({ tools })
    await one.say('hello')
    await one.settle()
    const other = await open({ beside: one, tools })
    await visibleText(other.frame, 'You said: hello').waitFor()
    await one.say('[[tool:postMessage_look {"where":"garden"}]]')
    for (const tab of [one, other]) {
      await visibleText(tab.frame, 'The tool answered:').waitFor()
      await tab.settle()
      await visibleText(tab.frame, /^Used “/).waitFor()
    }
    const called = ({ page }: OpenFrame) =>
      page.evaluate(() => (globalThis as unknown as { called: unknown[] }).called)
    expect(await called(one)).toEqual([{ name: 'postMessage_look', args: { where: 'garden' } }])
    expect(await called(other)).toEqual([])
  })

  test("run even if the response to the visitor's message arrives after the tool call", async () => {
    const opened = await open({ tools })
    await opened.say('hello')
    await opened.settle()
    await opened.page.route('**/trpc/visitor.send*', async (route) => {
      const response = await route.fetch()
      await visibleText(opened.frame, /^Using “/).waitFor()
      await opened.settle()
      await route.fulfill({ response })
    })
    await opened.say('[[tool:postMessage_look {}]]')
    await visibleText(opened.frame, 'The tool answered:').waitFor()
  })

  test('have no buttons in another tab, which shows an unknown outcome after 29 seconds', async () => {
    const one = await open({ tools })
    await one.say('[[tool:postMessage_remove {}]]')
    await one.frame.getByRole('button', { name: 'Allow once' }).waitFor()
    const context = one.page.context()
    await context.clock.install()
    const other = await open({ beside: one, tools })
    await visibleText(other.frame, /^Using “/).waitFor()
    expect(await other.frame.getByRole('button', { name: 'Allow once' }).count()).toBe(0)
    await context.clock.fastForward(30_000)
    await visibleText(other.frame, /^Outcome of “.+” unknown$/).waitFor()
    await one.frame.getByRole('button', { name: 'Allow once' }).click()
    await visibleText(one.frame, 'The tool answered:').waitFor()
    await visibleText(other.frame, 'The tool answered:').waitFor()
  })

  test('have an unknown outcome if the tab that sent the message is gone', async () => {
    const opened = await open({ tools })
    await opened.say('[[tool:postMessage_remove {}]]')
    await opened.frame.getByRole('button', { name: 'Allow once' }).waitFor()
    const reloaded = await reload(opened, { tools })
    await visibleText(reloaded.frame, /^Using “/).waitFor()
    await reloaded.say('next')
    await visibleText(reloaded.frame, 'You said: next').waitFor()
    await visibleText(reloaded.frame, /^Outcome of “.+” unknown$/).waitFor()
    await reloaded.settle()
  })

  test('can send their results again after the first request fails', async () => {
    const opened = await open({ tools })
    await opened.page.route('**/trpc/visitor.toolResults*', (route) => route.abort(), { times: 1 })
    await opened.say('[[tool:postMessage_look {}]]')
    await visibleText(opened.frame, 'cannot be reached').waitFor()
    await opened.frame.getByRole('button', { name: 'Try again' }).click()
    await visibleText(opened.frame, 'The tool answered:').waitFor()
  })
})

describe('the host page', () => {
  test('does not receive the text, title or id of a conversation', async () => {
    const canary = `canary${randomBytes(8).toString('hex')}`
    const opened = await open()
    await opened.page.evaluate(() => {
      const spied: string[] = []
      Object.assign(globalThis, { spied })
      addEventListener('message', ({ data }) => spied.push(JSON.stringify(data)))
    })
    await opened.say(canary)
    await visibleText(opened.frame, `You said: ${canary}`).waitFor()
    await opened.settle()
    const { conversation, token } = JSON.parse(Object.values(await stored(opened))[0] ?? '{}')
    const seen = await opened.page.evaluate(
      async ({ url, key, id }) => {
        const input = encodeURIComponent(JSON.stringify({ json: { conversation: id } }))
        const addresses = [
          `${url}/trpc/visitor.open?input=${input}`,
          `${url}/trpc/visitor.conversations?input=${encodeURIComponent('{"json":{}}')}`,
          `${url}/v1/conversations/${id}`,
          `${url}/v1/conversations/${id}/items`,
        ]
        const headers = { Authorization: `Bearer ${key}` }
        const texts: string[] = []
        for (const address of addresses) {
          const answer = await fetch(address, { headers }).then((one) => one.text(), String)
          const request = new XMLHttpRequest()
          request.open('GET', address, false)
          request.setRequestHeader('Authorization', headers.Authorization)
          try {
            request.send()
          } catch {}
          texts.push(answer, request.responseText)
        }
        const frame = document.createElement('iframe')
        frame.src = `${url}/embed/frame?key=${key.slice(0, 21)}`
        document.body.append(frame)
        await new Promise((resolve) => {
          frame.onload = resolve
        })
        try {
          texts.push(frame.contentDocument?.body.innerText ?? '', frame.contentWindow?.localStorage[0] ?? '')
        } catch {}
        frame.contentWindow?.postMessage({ protocol: 'parley/1', type: 'page-hello', session: 'x' }, '*')
        await new Promise((resolve) => setTimeout(resolve))
        const { said, spied } = globalThis as unknown as { said: unknown[]; spied: string[] }
        return [
          ...texts,
          ...spied,
          JSON.stringify(said),
          JSON.stringify({ ...localStorage }),
          document.cookie,
        ]
      },
      { url: harness.app.url, key: harness.agent.agent_key, id: conversation },
    )
    const text = seen.join('\n')
    for (const secret of [canary, token]) expect(text).not.toContain(secret)
    const said = JSON.stringify(await opened.said())
    for (const secret of [canary, token, conversation]) expect(said).not.toContain(secret)
    await expectOnly(opened, 'ready', 'mcp', 'unread', 'message')
  })
})
