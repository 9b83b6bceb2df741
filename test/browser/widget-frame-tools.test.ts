/** Tests that the widget frame passes the model's tool calls to the page and returns the results. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type FrameHarness,
  type HostPage,
  type ListedTool,
  type OpenFrame,
  openFrameHarness,
  visibleText,
} from '../support/widget-frame.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let harness: FrameHarness
beforeAll(async () => {
  harness = await openFrameHarness()
})
afterAll(() => harness?.close())

const tool = (name: string, more: Partial<ListedTool> = {}): ListedTool => ({
  name: `postMessage_${name}`,
  description: 'Does something.',
  inputSchema: { type: 'object', properties: { where: { type: 'string' } } },
  ...more,
})
const tools = [
  tool('look', { annotations: { title: 'Look around' } }),
  tool('remove', { annotations: { destructiveHint: true } }),
  tool('ask', { annotations: { requiresApproval: true } }),
]

const calledIn = ({ page }: OpenFrame) => page.evaluate(() => (globalThis as unknown as HostPage).called)

/** Runs `act`; returns the tool results that the next request to the model contains. */
async function resultsIn(opened: OpenFrame, act: () => Promise<void>): Promise<unknown[]> {
  const second = opened.page.waitForRequest((request) => (request.postData() ?? '').includes('"role":"tool"'))
  await act()
  const { messages } = JSON.parse((await second).postData() ?? '')[0].json
  return messages
    .filter(({ role }: { role: string }) => role === 'tool')
    .map(({ content }: { content: string }) => content)
}

describe('a tool call', () => {
  test('is passed to the page with its arguments, and its result is sent to the model', async () => {
    const opened = await harness.open({ tools })
    await opened.say('[[tool:postMessage_look {"where":"garden"}]]')
    await opened.frame.getByText(/^Used “.Look around.”$/).click()
    await opened.frame.getByRole('term').filter({ hasText: 'Where' }).waitFor()
    await opened.frame.getByText('Exact data').click()
    await opened.frame.getByRole('region', { name: 'Input' }).getByText('"garden"').waitFor()
    await visibleText(opened.frame, 'The tool answered:').waitFor()
    expect(await calledIn(opened)).toEqual([{ name: 'postMessage_look', args: { where: 'garden' } }])
    expect(opened.complaints).toEqual([])
  })

  test('runs concurrently with another call, and each result is sent even if one call fails', async () => {
    const opened = await harness.open({ tools })
    await opened.page.evaluate(() => {
      const here = globalThis as unknown as HostPage
      const waiting: (() => void)[] = []
      // Returns results only after both calls have arrived.
      here.answerTool = (_name, args) =>
        new Promise((resolve) => {
          const isError = (args as { where?: string }).where === 'b'
          waiting.push(() =>
            resolve({ isError, content: [{ type: 'text', text: isError ? 'closed' : 'open' }] }),
          )
          if (waiting.length === 2) for (const answer of waiting) answer()
        })
    })
    const results = await resultsIn(opened, () =>
      opened.say('[[tool:postMessage_look {"where":"a"}]] [[tool:postMessage_look {"where":"b"}]]'),
    )
    expect(results).toEqual(['open', 'Error: closed'])
    await visibleText(opened.frame, /^“.Look around.” failed$/).waitFor()
  })

  test('returns an error to the model when the page has removed the tool', async () => {
    const opened = await harness.open({ tools })
    await opened.page.route('**/trpc/chat.stream*', async (route) => {
      await opened.page.evaluate(() => {
        ;(globalThis as unknown as { tools: unknown[] }).tools = []
      })
      const message = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }
      await opened.post({ type: 'mcp', message })
      await route.continue()
    })
    const results = await resultsIn(opened, () => opened.say('[[tool:postMessage_look {}]]'))
    expect(results).toEqual(['Error: This page has no tool with this name.'])
    expect(await calledIn(opened)).toEqual([])
  })

  test('fails when its result exceeds 64 KiB', async () => {
    const opened = await harness.open({ tools })
    await opened.page.evaluate(() => {
      const here = globalThis as unknown as HostPage
      here.answerTool = () => ({ content: [{ type: 'text', text: 'é'.repeat(33_000) }] })
    })
    const results = await resultsIn(opened, () => opened.say('[[tool:postMessage_look {}]]'))
    expect(results).toEqual(['Error: The result of the tool is larger than 64 KiB.'])
  })

  test('uses its first result and ignores later and unexpected ones', async () => {
    const opened = await harness.open({ tools })
    await opened.page.evaluate(() => {
      const here = globalThis as unknown as HostPage
      here.answerTool = (_name, _args, id) => {
        const answer = (text: string, to: unknown) => {
          const message = { jsonrpc: '2.0', id: to, result: { content: [{ type: 'text', text }] } }
          here.port.postMessage({ type: 'mcp', message })
        }
        answer('forged', 'another id')
        answer('forged', 1)
        answer('first', id)
        answer('forged', id)
      }
    })
    const results = await resultsIn(opened, () => opened.say('[[tool:postMessage_look {}]]'))
    expect(results).toEqual(['first'])
    expect(await opened.frame.getByText('forged').count()).toBe(0)
  })

  test('without a result is cancelled when the user stops the reply', async () => {
    const opened = await harness.open({ tools })
    await opened.page.evaluate(() => {
      ;(globalThis as unknown as HostPage).answerTool = () => undefined
    })
    await opened.say('[[tool:postMessage_look {}]]')
    await visibleText(opened.frame, /^Using “.Look around.”…$/).waitFor()
    await opened.frame.getByRole('button', { name: 'Stop' }).click()
    await visibleText(opened.frame, 'You stopped this answer.').waitFor()
    await expect.poll(opened.said).toContainEqual({
      type: 'mcp',
      message: expect.objectContaining({ method: 'notifications/cancelled' }),
    })
    await opened.say('and on')
    await visibleText(opened.frame, 'You said: and on').waitFor()
  })
})

describe('a tool call that needs approval', () => {
  const danger = '[[tool:postMessage_remove {"where":"<b>*all*</b> \\u202egpj"}]]'

  test('shows the exact arguments and waits for the user', async () => {
    const opened = await harness.open({ tools })
    await opened.say(danger)
    const card = opened.frame.locator('.approval')
    await card.waitFor()
    expect(await card.getByRole('definition').innerText()).toBe('<b>*all*</b> \\u202egpj')
    await card.getByText('Exact data').click()
    expect(await card.locator('.exact-text').innerText()).toBe('{\n  "where": "<b>*all*</b> \\u202egpj"\n}')
    expect(await card.locator('b, em').count()).toBe(0)
    expect(await calledIn(opened)).toEqual([])
    await card.getByRole('button', { name: 'Allow once' }).press('Enter')
    await visibleText(opened.frame, /^Used “.remove.”$/).waitFor()
    expect(await calledIn(opened)).toEqual([
      { name: 'postMessage_remove', args: { where: '<b>*all*</b> \u202egpj' } },
    ])
  })

  test('returns an error to the model when the user declines', async () => {
    const opened = await harness.open({ tools })
    const results = await resultsIn(opened, async () => {
      await opened.say('[[tool:postMessage_ask {}]] [[tool:postMessage_look {}]]')
      await opened.frame.getByRole('button', { name: 'Don’t allow' }).click()
    })
    expect(results).toEqual([
      'Error: The visitor did not allow this call.',
      expect.stringContaining('postMessage_look'),
    ])
    await visibleText(opened.frame, /^“.ask.” was not allowed$/).waitFor()
    expect(await calledIn(opened)).toEqual([{ name: 'postMessage_look', args: {} }])
  })

  test('shows what the tool does, and the labels and values of its input', async () => {
    const booking = tool('book_room', {
      description: 'Books a room for the guest. Never call it twice.',
      inputSchema: {
        type: 'object',
        properties: { roomName: { type: 'string' }, nights: { type: 'integer', title: 'Length of stay' } },
      },
      annotations: { title: 'Book a room', requiresApproval: true },
    })
    const opened = await harness.open({ tools: [booking] })
    await opened.say('[[tool:postMessage_book_room {"roomName":"Sea view","nights":3,"breakfast":true}]]')
    const card = opened.frame.locator('.approval')
    await card.getByText('Books a room for the guest.', { exact: true }).waitFor()
    expect(await card.getByRole('term').allInnerTexts()).toEqual(['Room name', 'Length of stay', 'Breakfast'])
    expect(await card.getByRole('definition').allInnerTexts()).toEqual(['Sea view', '3', 'Yes'])
    expect(await card.getByRole('region', { name: 'Input' }).count()).toBe(0)
  })

  test('runs without asking again after “Always in this conversation”, until a new conversation starts', async () => {
    const opened = await harness.open({ tools })
    await opened.say('[[tool:postMessage_ask {"where":"a"}]]')
    await opened.frame.getByRole('button', { name: 'Always in this conversation' }).click()
    await opened.settle()
    await opened.say('[[tool:postMessage_ask {"where":"b"}]]')
    await expect.poll(() => calledIn(opened)).toHaveLength(2)
    await opened.settle()
    await opened.post({ type: 'newConversation' })
    await opened.frame.getByRole('button', { name: 'What can you do?' }).waitFor()
    await opened.say('[[tool:postMessage_ask {"where":"c"}]]')
    await opened.frame.locator('.approval').waitFor()
    expect(await calledIn(opened)).toHaveLength(2)
  })

  test('is discarded when the user stops the reply', async () => {
    const opened = await harness.open({ tools })
    await opened.say(danger)
    await opened.frame.locator('.approval').waitFor()
    await opened.frame.getByRole('button', { name: 'Stop' }).click()
    await visibleText(opened.frame, 'You stopped this answer.').waitFor()
    expect(await opened.frame.locator('.approval').count()).toBe(0)
    expect(await calledIn(opened)).toEqual([])
  })
})
