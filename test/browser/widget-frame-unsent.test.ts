/** Tests that texts and messages that the visitor has not sent survive a page reload. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { choose, greeting, openVisible, reopen, storedIn, textsOf } from '../support/stored-frames.ts'
import {
  type FrameHarness,
  helper,
  keeper,
  type OpenFrame,
  openFrameHarness,
  plainOptions,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
let local: { readonly agent_key: string }
beforeAll(async () => {
  harness = await openFrameHarness({}, keeper)
  local = await harness.app.createAgent(helper)
})
afterAll(() => harness?.close())

type Options = NonNullable<Parameters<FrameHarness['open']>[0]>

const input = ({ frame }: OpenFrame) => frame.locator('.composer textarea')
const draftOf = (opened: OpenFrame) => expect.poll(() => input(opened).inputValue())
const storedTexts = (opened: OpenFrame) => expect.poll(async () => JSON.stringify(await storedIn(opened)))

/** Opens a frame that shows the greeting, so that its conversation is known. */
async function open(options: Options = {}): Promise<OpenFrame> {
  const opened = await openVisible(harness, options)
  await visibleText(opened.frame, 'Hello! I am').waitFor()
  return opened
}

async function reload(opened: OpenFrame, options: Options = {}): Promise<OpenFrame> {
  const reloaded = await reopen(harness, opened, options)
  await visibleText(reloaded.frame, 'Hello! I am').waitFor()
  return reloaded
}

async function ask(opened: OpenFrame, text: string): Promise<void> {
  await opened.say(text)
  await visibleText(opened.frame, `You said: ${text}`).waitFor()
  await opened.settle()
}

/** Writes a message while the browser is offline. */
async function askOffline(opened: OpenFrame, text: string): Promise<void> {
  await opened.page.context().setOffline(true)
  await opened.frame.locator('.composer .offline').waitFor()
  await opened.say(text)
  await visibleText(opened.frame, 'You can continue as soon as').waitFor()
}

/** Counts the requests to the server that send a message, of all pages in the browser context. */
function countRequests({ page }: OpenFrame, address: RegExp): () => number {
  let count = 0
  page.context().on('request', (request) => {
    if (address.test(request.url())) count += 1
  })
  return () => count
}

/** Returns the texts of the visitor's messages that the server has stored, of all conversations. */
async function listAsked(text: string): Promise<string[]> {
  const { body } = await harness.app.call('GET', `/v1/conversations?agent=${harness.agent.agent_id}`)
  const asked: string[] = []
  for (const { id } of body.data) {
    const items = await harness.app.call('GET', `/v1/conversations/${id}/items`)
    asked.push(...JSON.stringify(items.body).split(`"${text}"`).slice(1))
  }
  return asked
}

const agents: [string, () => Options][] = [
  ['the browser stores', () => ({ key: local.agent_key })],
  ['the server stores', () => ({})],
]

describe.each(agents)('in a conversation that %s, a draft', (_where, getOptions) => {
  test('survives a reload, and is removed from storage when it is sent', async () => {
    const opened = await open(getOptions())
    await ask(opened, 'hello')
    await input(opened).fill('not yet sent')
    const reloaded = await reload(opened, getOptions())
    await draftOf(reloaded).toBe('not yet sent')
    await storedTexts(reloaded).toContain('not yet sent')
    await input(reloaded).press('Enter')
    await visibleText(reloaded.frame, 'You said: not yet sent').waitFor()
    await reloaded.settle()
    expect(Object.keys(await storedIn(reloaded)).join()).not.toContain('parley-unsent')
    expect(await input(await reload(reloaded, getOptions())).inputValue()).toBe('')
    expect(opened.complaints).toEqual([])
  })

  test('before the first message survives a reload', async () => {
    const opened = await open(getOptions())
    await input(opened).fill('my first words')
    await draftOf(await reload(opened, getOptions())).toBe('my first words')
  })

  test('disappears on logout', async () => {
    const opened = await open(getOptions())
    await input(opened).fill('a secret')
    await storedTexts(opened).toContain('a secret')
    await opened.post({ type: 'logout' })
    await draftOf(opened).toBe('')
    expect(await storedIn(opened)).toEqual({})
  })

  test.each(['reset', 'other token'])(
    'disappears when the page identifies its user again: %s',
    async (how) => {
      const tokenOf = (sub: string) => `e30.${btoa(JSON.stringify({ iss: 'shop', sub }))}.x`
      const options = { ...plainOptions, visitorToken: tokenOf('ada') }
      const { key } = getOptions()
      const opened = await openVisible(harness, { ...(key && { key }), options })
      await opened.frame.locator('.composer').waitFor()
      await input(opened).fill('of ada')
      if (how === 'reset') await opened.post({ type: 'resetVisitor' })
      else {
        const apiKey = key ?? harness.agent.agent_key
        await opened.post({
          type: 'configure',
          options: { ...options, apiKey, visitorToken: tokenOf('grace') },
        })
      }
      await storedTexts(opened).not.toContain('of ada')
    },
  )

  test('disappears when another user is set, and is not shown to that user', async () => {
    const opened = await open({ ...getOptions(), options: { user: 'ada' } })
    await input(opened).fill('of ada')
    await storedTexts(opened).toContain('of ada')
    const apiKey = getOptions().key ?? harness.agent.agent_key
    await opened.post({ type: 'configure', options: { ...plainOptions, apiKey, user: 'grace' } })
    await draftOf(opened).toBe('')
    await storedTexts(opened).not.toContain('of ada')
    const ada = await reload(opened, { ...getOptions(), options: { user: 'ada' } })
    expect(await input(ada).inputValue()).toBe('')
  })

  test('is not stored if the page disables history', async () => {
    const opened = await open(getOptions())
    await input(opened).fill('a secret')
    const reloaded = await reload(opened, { ...getOptions(), options: { history: false } })
    expect(await input(reloaded).inputValue()).toBe('')
    expect(JSON.stringify(await storedIn(reloaded))).not.toContain('a secret')
    await input(reloaded).fill('another secret')
    expect(await input(await reload(reloaded, getOptions())).inputValue()).toBe('')
  })
})

describe('in conversations that the server stores', () => {
  test('each conversation has its own draft', async () => {
    const opened = await open()
    await ask(opened, 'first topic')
    await input(opened).fill('about the first')
    await choose(opened, 'New conversation')
    await draftOf(opened).toBe('')
    await input(opened).fill('about the second')
    await input(opened).press('Enter')
    await input(opened).fill('typed during the answer')
    await visibleText(opened.frame, 'You said: about the second').waitFor()
    await opened.settle()
    const reloaded = await reload(opened)
    await visibleText(reloaded.frame, 'You said: about the second').waitFor()
    await draftOf(reloaded).toBe('typed during the answer')
    await choose(reloaded, 'Earlier conversations')
    await reloaded.frame.getByRole('button', { name: /^first topic/ }).click()
    await draftOf(reloaded).toBe('about the first')
  })

  test('a draft disappears when the visitor deletes the conversation', async () => {
    const opened = await open()
    await ask(opened, 'to be deleted')
    await input(opened).fill('also this')
    await storedTexts(opened).toContain('also this')
    await choose(opened, 'Delete conversation')
    await opened.frame.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await draftOf(opened).toBe('')
    expect(JSON.stringify(await storedIn(opened))).not.toContain('also this')
  })

  test('text that the visitor types while the conversation is loading is kept', async () => {
    const opened = await open()
    await ask(opened, 'hello')
    const released = Promise.withResolvers<void>()
    await opened.page.context().route('**/trpc/visitor.open*', async (route) => {
      await released.promise
      await route.continue()
    })
    const reloaded = await reopen(harness, opened)
    await input(reloaded).fill('typed early')
    released.resolve()
    await visibleText(reloaded.frame, 'You said: hello').waitFor()
    await draftOf(reloaded).toBe('typed early')
  })

  test.each(['first', 'second'])(
    'the %s message, written offline, is there after a reload and is sent once',
    async (which) => {
      const text = `written offline as the ${which}`
      const opened = await open()
      if (which === 'second') await ask(opened, 'hello')
      await askOffline(opened, text)
      await storedTexts(opened).toContain(text)
      const sent = countRequests(opened, /visitor\.send/)
      await opened.page.goto('about:blank')
      await opened.page.context().setOffline(false)
      const reloaded = await openVisible(harness, { beside: opened })
      await visibleText(reloaded.frame, `You said: ${text}`).waitFor()
      await reloaded.settle()
      expect(sent()).toBe(1)
      expect(Object.keys(await storedIn(reloaded)).join()).not.toContain('parley-unsent')
      const again = await reload(reloaded)
      const before = which === 'second' ? ['hello', 'You said: hello'] : []
      await expect.poll(() => textsOf(again)).toEqual([greeting, ...before, text, `You said: ${text}`])
      expect(sent()).toBe(1)
    },
  )

  test('a message that the server did not accept is offered again after a reload', async () => {
    const opened = await open()
    await ask(opened, 'hello')
    await opened.page.route('**/trpc/visitor.send*', (route) => route.abort())
    await opened.say('please try')
    await visibleText(opened.frame, 'cannot be reached').waitFor()
    const reloaded = await reload(opened)
    await visibleText(reloaded.frame, 'cannot be reached').waitFor()
    await reloaded.frame.getByRole('button', { name: 'Try again' }).click()
    await visibleText(reloaded.frame, 'You said: please try').waitFor()
    expect(await textsOf(reloaded)).toEqual([
      greeting,
      ...['hello', 'You said: hello', 'please try', 'You said: please try'],
    ])
  })

  test('a message is offered, and not sent without asking, a day after it was written', async () => {
    const opened = await open()
    await ask(opened, 'hello')
    await askOffline(opened, 'from yesterday')
    await storedTexts(opened).toContain('from yesterday')
    await opened.frame.evaluate(() => {
      for (const [name, text] of Object.entries(localStorage)) {
        const older = (found: string) => `"atMs":${Number(found.slice(7)) - 86_400_000}`
        if (name.startsWith('parley-unsent')) localStorage.setItem(name, text.replace(/"atMs":\d+/g, older))
      }
    })
    const sent = countRequests(opened, /visitor\.send/)
    await opened.page.goto('about:blank')
    await opened.page.context().setOffline(false)
    const reloaded = await openVisible(harness, { beside: opened })
    await reloaded.frame.getByRole('button', { name: 'Try again' }).waitFor()
    expect(sent()).toBe(0)
  })

  test.each(['first', 'second'])(
    'the %s message is not sent again if the server accepted it before the reload',
    async (which) => {
      const text = `accepted before the reload as the ${which}`
      const opened = await open()
      if (which === 'second') await ask(opened, 'hello')
      const accepted = Promise.withResolvers<void>()
      await opened.page.route('**/trpc/visitor.send*', async (route) => {
        await route.fetch()
        accepted.resolve()
      })
      await opened.say(text)
      await accepted.promise
      const reloaded = await reload(opened)
      await visibleText(reloaded.frame, `You said: ${text}`).waitFor()
      await reloaded.settle()
      const before = which === 'second' ? ['hello', 'You said: hello'] : []
      expect(await textsOf(reloaded)).toEqual([greeting, ...before, text, `You said: ${text}`])
      expect(Object.keys(await storedIn(reloaded)).join()).not.toContain('parley-unsent')
      expect(await listAsked(text)).toHaveLength(1)
    },
  )

  test('a message that waits in one tab is not sent by a second tab, until the first one is closed', async () => {
    const one = await open()
    await ask(one, 'hello')
    await one.frame.evaluate(() => {
      const { fetch } = globalThis
      globalThis.fetch = (input, init) =>
        String(input).includes('visitor.send') ? new Promise(() => {}) : fetch(input, init)
    })
    await one.say('only from one tab')
    await storedTexts(one).toContain('only from one tab')
    const sent = countRequests(one, /visitor\.send/)
    const other = await open({ beside: one })
    await visibleText(other.frame, 'You said: hello').waitFor()
    await ask(other, 'from the second tab')
    expect(sent()).toBe(1)
    expect(await textsOf(other)).not.toContain('only from one tab')
    await one.page.close()
    await visibleText(other.frame, 'You said: only from one tab').waitFor()
    expect(sent()).toBe(2)
    expect(await listAsked('only from one tab')).toHaveLength(1)
  })

  test('unsent messages disappear on logout', async () => {
    const opened = await open()
    await askOffline(opened, 'secret message')
    await storedTexts(opened).toContain('secret message')
    await opened.post({ type: 'logout' })
    await expect.poll(() => storedIn(opened)).toEqual({})
    expect(await opened.frame.locator('article.user').count()).toBe(0)
  })

  test('a message that the visitor removes is not restored', async () => {
    const opened = await open()
    await askOffline(opened, 'never mind')
    await opened.frame.getByRole('button', { name: 'Remove message' }).click()
    await opened.frame.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
    await expect.poll(() => storedIn(opened)).toEqual({})
  })
})

describe('in a conversation that the browser stores', () => {
  const options = () => ({ key: local.agent_key })

  test('a message written offline is there after a reload and is sent once', async () => {
    const opened = await open(options())
    await askOffline(opened, 'local and offline')
    await storedTexts(opened).toContain('local and offline')
    const sent = countRequests(opened, /chat\.stream/)
    await opened.page.goto('about:blank')
    await opened.page.context().setOffline(false)
    const reloaded = await openVisible(harness, { beside: opened, ...options() })
    await visibleText(reloaded.frame, 'You said: local and offline').waitFor()
    await reloaded.settle()
    expect(await textsOf(reloaded)).toEqual([greeting, 'local and offline', 'You said: local and offline'])
    expect(sent()).toBe(1)
  })

  test('a message written offline is sent by only one of two tabs when the network is available', async () => {
    const one = await open(options())
    const other = await open({ beside: one, ...options() })
    await askOffline(one, 'from one of two')
    await visibleText(other.frame, 'from one of two').waitFor()
    const sent = countRequests(one, /chat\.stream/)
    await one.page.context().setOffline(false)
    for (const tab of [one, other]) await visibleText(tab.frame, 'You said: from one of two').waitFor()
    expect(sent()).toBe(1)
  })
})
