/** Tests how the widget frame shows the events of a conversation on the server, and how it reconnects. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { FeedEvent, VisitorItem, VisitorTurn } from '../../src/visitors/schema.ts'
import type { Reply } from '../../widget/frame/conversation.ts'
import { createFeed, type FeedTiming } from '../../widget/frame/server-conversation/feed.ts'
import { createEntryRenderer } from '../../widget/frame/server-conversation/render-view.ts'
import {
  emptyView,
  reduceView,
  type View,
  type ViewAction,
} from '../../widget/frame/server-conversation/view.ts'

const clientId = '5e6f0c1a-0f4b-4a3e-9d55-2f6a6c1f0001'

function itemOf(id: string, more: Partial<VisitorItem>): VisitorItem {
  return {
    id,
    turn_id: 'turn_1',
    type: 'message',
    author: 'model',
    status: 'completed',
    client_id: null,
    created_at: 1,
    ...more,
  }
}

const turnOf = (id: string, status: VisitorTurn['status'], more: Partial<VisitorTurn> = {}): VisitorTurn => ({
  id,
  status,
  reason: null,
  error_code: null,
  ...more,
})

const question = itemOf('msg_1', { author: 'visitor', client_id: clientId, text: 'Hello' })
const event = (of: Omit<FeedEvent, 'id'>): ViewAction => ({
  type: 'event',
  event: { id: '1', ...of } as FeedEvent,
})
const arrives = (item: VisitorItem) => event({ event: 'conversation.item', data: { item } })
const starts = (id: string) =>
  event({
    event: 'conversation.turn.started',
    data: { turn: turnOf(id, 'in_progress'), client_id: null },
  })
const streams = (turn: string, text: string) =>
  event({ event: 'conversation.turn.delta', data: { turn, text } })
const ends = (turn: VisitorTurn) => event({ event: 'conversation.turn.ended', data: { turn } })
const sends: ViewAction = {
  type: 'sending',
  clientId,
  text: 'Hello',
  files: [],
  replaces: undefined,
  nowMs: 1000,
}

const reduce = (...actions: ViewAction[]): View => actions.reduce(reduceView, emptyView)
const entriesOf = (...actions: ViewAction[]) => createEntryRenderer()(reduce(...actions))
const replyOf = (...actions: ViewAction[]) => entriesOf(...actions).at(-1) as Reply

describe('the conversation view', () => {
  test('shows a message immediately, and does not repeat it when its item arrives', () => {
    expect(entriesOf(sends)).toMatchObject([
      { kind: 'user', id: clientId, text: 'Hello' },
      { kind: 'reply', status: 'streaming' },
    ])
    const entries = entriesOf(sends, arrives(question), starts('turn_1'), arrives(question))
    expect(entries).toMatchObject([
      { kind: 'user', id: clientId, text: 'Hello' },
      { kind: 'reply', id: `reply ${clientId}`, status: 'streaming', rounds: [{ text: '', calls: [] }] },
    ])
  })

  test('replaces streamed text with the stored item', () => {
    const streamed = [
      arrives(question),
      starts('turn_1'),
      streams('turn_1', 'Hi '),
      streams('turn_1', 'there'),
    ]
    expect(replyOf(...streamed)).toMatchObject({ status: 'streaming', rounds: [{ text: 'Hi there' }] })
    const answer = arrives(itemOf('msg_2', { text: 'Hi there!' }))
    expect(replyOf(...streamed, answer, ends(turnOf('turn_1', 'completed')))).toMatchObject({
      status: 'done',
      rounds: [{ text: 'Hi there!' }],
    })
  })

  test('appends a continued answer to the interrupted text', () => {
    const cut = [
      arrives(question),
      starts('turn_1'),
      arrives(itemOf('msg_2', { text: 'One, tw', status: 'incomplete' })),
      ends(turnOf('turn_1', 'incomplete', { reason: 'interrupted' })),
    ]
    expect(replyOf(...cut)).toMatchObject({
      status: 'interrupted',
      incomplete: 'interrupted',
      continuable: 'turn_1',
    })
    const continued = replyOf(...cut, starts('turn_2'), streams('turn_2', 'o, three'))
    expect(continued).toMatchObject({ status: 'streaming', rounds: [{ text: 'One, two, three' }] })
    expect(continued.continuable).toBeUndefined()
  })

  test('ignores an older status of a turn that has ended', () => {
    const reply = replyOf(arrives(question), starts('turn_1'), ends(turnOf('turn_1', 'completed')), {
      type: 'turn',
      turn: turnOf('turn_1', 'in_progress'),
    })
    expect(reply.status).not.toBe('streaming')
  })

  test('keeps an unsent message when the conversation is reloaded', () => {
    const failure = { code: 'offline' } as const
    const conversation = {
      id: 'conv_1',
      title: null,
      last_at: 1,
      created_at: 1,
      turns: 1,
      mode: 'model',
    } as const
    const result = { conversation, items: [], modes: [], ratings: [], versions: [], turn: null, cursor: '1' }
    const entries = entriesOf(sends, { type: 'send-failed', clientId, failure }, { type: 'opened', result })
    expect(entries).toMatchObject([{ text: 'Hello' }, { status: 'failed', failure }])
  })

  test("shows a call's outcome as unknown if the service supplied the result, and as failed if the result is an error", () => {
    const call = itemOf('fc_1', { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' })
    const output = (author: VisitorItem['author'], text: string) =>
      arrives(itemOf('fco_1', { type: 'function_call_output', call_id: 'call_1', author, output: text }))
    const statusOf = (...actions: ViewAction[]) =>
      replyOf(arrives(question), arrives(call), ...actions).rounds[0]?.calls[0]?.status
    expect(statusOf()).toBe('running')
    expect(statusOf(output('page', 'fine'))).toBe('done')
    expect(statusOf(output('page', 'Error: closed'))).toBe('failed')
    expect(statusOf(output('service', 'The outcome is unknown.'))).toBe('unknown')
  })

  test('returns the same objects for messages that have not changed', () => {
    const render = createEntryRenderer()
    const second = itemOf('msg_3', { author: 'visitor', turn_id: 'turn_2', text: 'More' })
    const view = reduce(arrives(question), arrives(itemOf('msg_2', { text: 'Hi' })), arrives(second))
    const before = render(view)
    const after = render(reduceView(view, streams('turn_2', 'Well')))
    expect(after[0]).toBe(before[0])
    expect(after[1]).toBe(before[1])
  })
})

describe('the feed', () => {
  const timing: FeedTiming = { firstMs: 500, longestMs: 15_000, silenceMs: 40_000, random: () => 1 }
  let cursors: string[]

  beforeEach(() => {
    vi.useFakeTimers()
    cursors = []
  })
  afterEach(() => vi.useRealTimers())

  function openFeed(connect: Parameters<typeof createFeed>[0]['connect']) {
    const feed = createFeed({ connect, onEvent: () => {}, onFailure: () => true, timing })
    feed.follow('conv_1', '0')
    return feed
  }

  const fails = async (_id: string, cursor: string): Promise<never> => {
    cursors.push(cursor)
    throw new Error('offline')
  }

  test('reconnects after 0.5 seconds and doubles the wait up to 15 seconds', async () => {
    const feed = openFeed(fails)
    const startedAtMs = Date.now()
    const times: number[] = []
    while (times.length < 8) {
      const { length } = cursors
      while (cursors.length === length) await vi.advanceTimersByTimeAsync(100)
      times.push(Date.now() - startedAtMs)
    }
    const waits = times.map((time, index) => time - (times[index - 1] ?? 0))
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000])
    feed.stop()
  })

  test('reconnects immediately when the page requests it', async () => {
    const feed = openFeed(fails)
    await vi.advanceTimersByTimeAsync(10_000)
    const { length } = cursors
    feed.wake(false)
    await vi.advanceTimersByTimeAsync(0)
    expect(cursors.length).toBe(length + 1)
    feed.stop()
  })

  test('reconnects from the last received event if no data arrives for 40 seconds', async () => {
    const feed = openFeed(async (_id, cursor, signal, onByte) => {
      cursors.push(cursor)
      onByte()
      return (async function* () {
        yield { id: `${cursor}+`, event: 'conversation.turn.delta', data: { turn: 'turn_1' } } as FeedEvent
        await new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')))
        })
      })()
    })
    await vi.advanceTimersByTimeAsync(39_000)
    expect(cursors).toEqual(['0'])
    await vi.advanceTimersByTimeAsync(2000)
    expect(cursors).toEqual(['0', '0+'])
    feed.stop()
  })
})
