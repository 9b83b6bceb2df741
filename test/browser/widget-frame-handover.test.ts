/** Tests how visitors ask for a person in the widget frame, and how they write to that person. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { listAxeFaults } from '../support/axe.ts'
import { answer, change } from '../support/handover.ts'
import {
  begins,
  choose,
  openVisible,
  reopen,
  type StoredOptions,
  slow,
  storedIn,
} from '../support/stored-frames.ts'
import {
  expectOnly,
  type FrameHarness,
  keeper,
  type OpenFrame,
  openFrameHarness,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const ASK = 'Talk to a person'
const ANA = { name: 'Ana' }

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness(
    {},
    `${keeper}  handover: { whenNobody: "Our team answers from 9 to 17." }\n`,
  )
})
afterAll(() => harness?.close())

/** Opens a frame with an answer. Returns it with the id of its conversation. */
async function openAnswer(options: StoredOptions = {}): Promise<{ opened: OpenFrame; id: string }> {
  const opened = await openVisible(harness, options)
  await opened.say('hello')
  await visibleText(opened.frame, 'You said: hello').waitFor()
  await opened.settle()
  return { opened, id: await idOf(opened) }
}

async function idOf(opened: OpenFrame): Promise<string> {
  return JSON.parse(Object.values(await storedIn(opened))[0] ?? '{}').conversation
}

const own = (id: string, what: Parameters<typeof change>[2], body?: object) =>
  change(harness.app, id, what, body)
const writeAs = (id: string, text: string, more: object = ANA) => answer(harness.app, id, text, more)
const modesOf = async (opened: OpenFrame) =>
  (await opened.said()).flatMap((message) => (message.type === 'mode' ? [message.mode] : []))
const bar = ({ frame }: OpenFrame) => frame.getByRole('region', { name: 'Who answers' })
const bubblesOf = ({ frame }: OpenFrame) => frame.locator('.bubble').allTextContents()
const notesOf = ({ frame }: OpenFrame) => frame.locator('.note > span').allTextContents()

/** Returns the texts of the visitor's stored messages. */
async function readTexts(id: string): Promise<string[]> {
  const { body } = await harness.app.call('GET', `/v1/conversations/${id}/items?order=asc&limit=100`)
  return body.data.flatMap((item: { role?: string; content?: { text: string }[] }) =>
    item.role === 'user' ? [item.content?.[0]?.text] : [],
  )
}

describe('a visitor who asks for a person', () => {
  test('waits, sees the name of the person who takes over, and sees each message once', async () => {
    const { opened, id } = await openAnswer()
    await choose(opened, ASK)
    await bar(opened).getByText('Waiting for a person.').waitFor()
    await bar(opened).getByText('Without an answer within 10 minutes, the assistant continues.').waitFor()
    await opened.say('Is a person there?')
    await opened.say('I have a question.')
    await expect.poll(() => readTexts(id)).toContain('I have a question.')
    await own(id, 'takeover', ANA)
    await bar(opened).getByText('You are talking to Ana').waitFor()
    await writeAs(id, 'Hello, this is Ana. See https://example.org/help.')
    await visibleText(opened.frame, 'Hello, this is Ana.').waitFor()
    const link = opened.frame.getByRole('link', { name: 'https://example.org/help', exact: true })
    expect(await link.getAttribute('href')).toBe('https://example.org/help')
    await opened.say('Thank you!')
    await expect.poll(() => readTexts(id)).toContain('Thank you!')
    await own(id, 'handback')
    await visibleText(opened.frame, 'The assistant answers again.').waitFor()
    expect(await bar(opened).count()).toBe(0)
    await opened.say('and now the model')
    await visibleText(opened.frame, 'You said: and now the model').waitFor()
    const bubbles = [
      ...['hello', 'Is a person there?', 'I have a question.'],
      ...['Hello, this is Ana. See https://example.org/help.', 'Thank you!', 'and now the model'],
    ]
    const notes = [
      ...['A person has been asked to answer.', 'You are now talking to Ana.'],
      'The assistant answers again.',
    ]
    expect(await bubblesOf(opened)).toEqual(bubbles)
    expect(await notesOf(opened)).toEqual(notes)
    expect(await modesOf(opened)).toEqual(['waiting', 'person', 'model'])
    const reloaded = await reopen(harness, opened)
    await visibleText(reloaded.frame, 'You said: and now the model').waitFor()
    expect(await bubblesOf(reloaded)).toEqual(bubbles)
    expect(await notesOf(reloaded)).toEqual(notes)
    expect(opened.complaints).toEqual([])
  })

  test('can ask only after the first message, and only if the agent offers the button', async () => {
    const opened = await openVisible(harness)
    await opened.frame.getByRole('button', { name: 'More actions' }).click()
    const item = opened.frame.getByRole('menuitem', { name: ASK })
    expect(await item.getAttribute('aria-disabled')).toBe('true')
    expect(await item.innerText()).toContain('(after your first message)')
    const agent = await harness.app.createAgent(`${keeper}  handover: { button: false }\n`)
    const other = await openVisible(harness, { key: agent.agent_key })
    await visibleText(other.frame, 'Hello! I am').waitFor()
    await other.frame.getByRole('button', { name: 'More actions' }).click()
    await other.frame.getByRole('menuitem', { name: 'Earlier conversations' }).waitFor()
    expect(await other.frame.getByRole('menuitem', { name: ASK }).count()).toBe(0)
  })

  test('can use the button of a failed answer', async () => {
    const { opened } = await openAnswer()
    await opened.say('[[error:500]]')
    await opened.frame.locator('.failure').getByRole('button', { name: ASK }).click()
    await bar(opened).getByText('Waiting for a person.').waitFor()
    expect(await opened.frame.getByRole('button', { name: ASK }).count()).toBe(0)
  })

  test("sees the agent's message if no person answers, and the model answers again", async () => {
    const agent = await harness.app.createAgent(
      `${keeper}  handover: { timeout: 1s, whenNobody: "Our team answers from 9 to 17." }\n`,
    )
    const { opened } = await openAnswer({ key: agent.agent_key })
    await choose(opened, ASK)
    await visibleText(opened.frame, 'Our team answers from 9 to 17.').waitFor()
    await expect.poll(() => bar(opened).count()).toBe(0)
    await opened.say('hello again')
    await visibleText(opened.frame, 'You said: hello again').waitFor()
  })

  test('sees no name if the agent hides it', async () => {
    const agent = await harness.app.createAgent(`${keeper}  handover: { showName: false }\n`)
    const { opened, id } = await openAnswer({ key: agent.agent_key })
    await own(id, 'takeover', ANA)
    await bar(opened).getByText('You are talking to a person').waitFor()
    await writeAs(id, 'Hello.')
    await visibleText(opened.frame, 'Hello.').waitFor()
    expect(await opened.frame.locator('body').innerText()).not.toContain('Ana')
  })
})

describe('a takeover', () => {
  test('in the middle of an answer keeps the text, and the visitor can write immediately', async () => {
    const opened = await openVisible(harness)
    await opened.say(slow)
    await begins(opened)
    const id = await idOf(opened)
    await own(id, 'takeover', ANA)
    await bar(opened).getByText('You are talking to Ana').waitFor()
    await opened.settle()
    expect(await opened.frame.getByText('You stopped this answer.').count()).toBe(0)
    expect(await opened.frame.getByRole('button', { name: 'Continue' }).count()).toBe(0)
    await opened.say('to Ana')
    await expect.poll(() => readTexts(id)).toContain('to Ana')
    await writeAs(id, 'from Ana')
    await visibleText(opened.frame, 'from Ana').waitFor()
    expect(await bubblesOf(opened)).toEqual([slow, 'to Ana', 'from Ana'])
    expect(await opened.frame.locator('article.reply .prose').last().textContent()).toMatch(
      /^You said: one two/,
    )
    expect(await opened.frame.locator('article.reply').count()).toBe(2)
  })

  test("is announced to screen readers, as are the person's messages", async () => {
    const { opened, id } = await openAnswer()
    const announced = opened.frame.locator('[role=status].unseen')
    await own(id, 'takeover', ANA)
    await announced.getByText('You are now talking to Ana.').waitFor()
    await writeAs(id, 'Can I help you?')
    await announced.getByText('Ana said: Can I help you?').waitFor()
    await own(id, 'handback')
    await announced.getByText('The assistant answers again.').waitFor()
  })

  test('withdraws the approval prompt for a page tool, and the tool does not run', async () => {
    const tools = [
      { name: 'postMessage_remove', inputSchema: { type: 'object' }, annotations: { destructiveHint: true } },
    ]
    const { opened, id } = await openAnswer({ tools })
    await opened.say('[[tool:postMessage_remove {}]]')
    await opened.frame.getByRole('button', { name: 'Allow once' }).waitFor()
    await own(id, 'takeover', ANA)
    await visibleText(opened.frame, /^“.+” was not used$/).waitFor()
    expect(await opened.frame.getByRole('button', { name: 'Allow once' }).count()).toBe(0)
    expect(await opened.frame.locator('.failure').count()).toBe(0)
    await opened.say('to Ana')
    await expect.poll(() => readTexts(id)).toContain('to Ana')
    await own(id, 'handback')
    await visibleText(opened.frame, 'The assistant answers again.').waitFor()
    await opened.say('and now the model')
    await visibleText(opened.frame, 'You said: and now the model').waitFor()
    expect(await opened.page.evaluate(() => (globalThis as unknown as { called: unknown[] }).called)).toEqual(
      [],
    )
  })
})

describe('a message to a person', () => {
  test('is resent until the server has received it, and is stored only once', async () => {
    const { opened, id } = await openAnswer()
    await own(id, 'takeover', ANA)
    await bar(opened).waitFor()
    let lost = 0
    await opened.page.route(
      '**/trpc/visitor.send*',
      async (route) => {
        lost += 1
        await route.fetch()
        await route.abort()
      },
      { times: 2 },
    )
    await opened.say('first')
    await opened.say('second')
    await expect.poll(async () => (await readTexts(id)).slice(-2)).toEqual(['first', 'second'])
    await expect.poll(() => opened.frame.getByText('Not sent yet').count()).toBe(0)
    expect(lost).toBe(2)
    expect(await bubblesOf(opened)).toEqual(['hello', 'first', 'second'])
    expect((await readTexts(id)).filter((text) => text === 'first')).toHaveLength(1)
  })

  test('waits while the browser is offline, and is sent when the network returns', async () => {
    const { opened, id } = await openAnswer()
    await own(id, 'takeover', ANA)
    await bar(opened).waitFor()
    await opened.page.context().setOffline(true)
    await opened.say('from the tunnel')
    await visibleText(opened.frame, 'Not sent yet. Trying again…').waitFor()
    await opened.page.context().setOffline(false)
    await expect.poll(() => readTexts(id)).toContain('from the tunnel')
    await expect.poll(() => opened.frame.getByText('Not sent yet').count()).toBe(0)
  })

  test('can have at most 8,000 characters', async () => {
    const { opened, id } = await openAnswer()
    await own(id, 'takeover', ANA)
    await bar(opened).waitFor()
    await opened.frame.locator('textarea').fill('x'.repeat(8001))
    await visibleText(opened.frame, 'The message is too long: 8,001 characters (limit: 8,000).').waitFor()
    const send = opened.frame.getByRole('button', { name: 'Send' })
    expect(await send.getAttribute('aria-disabled')).toBe('true')
  })
})

describe('a message from a person', () => {
  test('is unread while the window is closed, and the page does not receive its text', async () => {
    const { opened, id } = await openAnswer()
    await own(id, 'takeover', ANA)
    await bar(opened).waitFor()
    await opened.post({ type: 'visibility', isOpen: false })
    await writeAs(id, 'a secret answer')
    await writeAs(id, 'another one')
    await expect.poll(opened.said).toContainEqual({ type: 'unread', count: 2, label: '2 new messages' })
    await opened.post({ type: 'visibility', isOpen: true })
    await expect
      .poll(async () => (await opened.said()).at(-1))
      .toEqual({ type: 'unread', count: 0, label: '' })
    const said = JSON.stringify(await opened.said())
    for (const secret of ['secret', 'Ana', id]) expect(said).not.toContain(secret)
    expect(await opened.said()).toContainEqual({ type: 'message', role: 'person' })
    await expectOnly(opened, 'ready', 'mcp', 'unread', 'message', 'mode')
  })

  test('appears in every tab of the visitor', async () => {
    const { opened, id } = await openAnswer()
    const other = await openVisible(harness, { beside: opened })
    await visibleText(other.frame, 'You said: hello').waitFor()
    await own(id, 'takeover', ANA)
    await opened.say('to Ana')
    await other.frame.locator('.bubble', { hasText: 'to Ana' }).waitFor()
    await writeAs(id, 'to both tabs')
    for (const tab of [opened, other]) {
      await visibleText(tab.frame, 'to both tabs').waitFor()
      expect(await bubblesOf(tab)).toEqual(['hello', 'to Ana', 'to both tabs'])
    }
  })
})

describe.each(['light', 'dark'] as const)(
  'in the %s theme, the frame has no accessibility violations',
  (theme) => {
    test('while the visitor waits for a person or talks to one', async () => {
      const { opened, id } = await openAnswer({ options: { theme } })
      await choose(opened, ASK)
      await bar(opened).waitFor()
      await opened.say('hello?')
      expect(await listAxeFaults(opened.frame)).toEqual([])
      await own(id, 'takeover', ANA)
      await writeAs(id, 'Hello, this is Ana. See https://example.org/help.')
      await visibleText(opened.frame, 'this is Ana').waitFor()
      expect(await listAxeFaults(opened.frame)).toEqual([])
    })
  },
)
