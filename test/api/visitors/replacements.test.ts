/** Tests how visitors edit and remove messages and request other answers, and what the owner's log keeps. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { answer, change, startConversation } from '../../support/handover.ts'
import {
  beginSession,
  followUntil,
  isEnd,
  say,
  sayAndWait,
  type TestVisitor,
} from '../../support/visitors.ts'

const harness = await startChatHarness()
const START = '0.0.e'

/** Starts a conversation, and sends each message after the previous one was answered. */
async function converse(...texts: readonly string[]) {
  const { app, key, id, one } = await startConversation(harness)
  const first = await one.visitor.open.query({ conversation: id })
  const turns = [first.turn?.id ?? '']
  for (const text of texts) turns.push((await sayAndWait(one, text, { conversation: id })).sent.turn.id)
  return { app, key, id, one, turns }
}

async function regenerate(one: TestVisitor, turn: string, client_id: string = randomUUID()) {
  const sent = await one.visitor.regenerate.mutate({ turn, client_id })
  const { conversation, cursor } = sent
  const events = await followUntil(one, { conversation: conversation.id, cursor }, isEnd)
  return { sent, turn: sent.turn?.id ?? '', events }
}

const said = async (one: TestVisitor, conversation: string) =>
  (await one.visitor.open.query({ conversation })).items.map(({ text }) => text)

async function lastMessages(): Promise<unknown[]> {
  const chats = await harness.listChats()
  const bodies = chats.map(({ body }) => body as { messages: { content: unknown }[] })
  return (
    bodies
      .at(-1)
      ?.messages.slice(1)
      .map(({ content }) => content) ?? []
  )
}

interface LoggedTurn {
  readonly id: string
  readonly replaced: object | null
  readonly previous_id: string | null
}

/** Reads the owner's log: the turns by id, and the text of all items. */
async function readLog(app: TestApp, id: string) {
  const turns = await app.call('GET', `/v1/conversations/${id}/turns`)
  const items = await app.call('GET', `/v1/conversations/${id}/items?limit=100`)
  const data: readonly LoggedTurn[] = turns.body.data
  return { turns: new Map(data.map((turn) => [turn.id, turn])), text: JSON.stringify(items.body.data) }
}

const rejection = (code: string) => ({ data: { httpStatus: 409, code } })

describe('an edited message', () => {
  test('replaces the earlier message and everything after it for the model and the visitor', async () => {
    const { id, one, turns } = await converse('Second. {{up:text Two.}}', 'Third. {{up:text Three.}}')
    const { sent } = await sayAndWait(one, 'Other. {{up:text Other answer.}}', {
      conversation: id,
      replaces: turns[1] ?? '',
    })
    const [first, answered] = await said(one, id)
    expect(await said(one, id)).toEqual([
      first,
      answered,
      'Other. {{up:text Other answer.}}',
      'Other answer.',
    ])
    expect(await lastMessages()).toEqual([first, answered, 'Other. {{up:text Other answer.}}'])
    await sayAndWait(one, 'Next.', { conversation: id })
    expect((await lastMessages()).slice(2)).toEqual([
      'Other. {{up:text Other answer.}}',
      'Other answer.',
      'Next.',
    ])
    expect(sent.conversation.id).toBe(id)
  })

  test("stays in the owner's log, where each replaced turn states what replaced it", async () => {
    const { app, id, one, turns } = await converse('Second.')
    const { sent } = await sayAndWait(one, 'Corrected.', { conversation: id, replaces: turns[1] ?? '' })
    const { turns: logged, text } = await readLog(app, id)
    expect(logged.get(turns[1] ?? '')?.replaced).toEqual({ how: 'edited', by: sent.turn.id })
    expect(logged.get(sent.turn.id)).toMatchObject({ replaced: null, previous_id: turns[0] })
    expect(text).toContain('Second.')
    expect(text).toContain(JSON.stringify({ how: 'edited', turns: [turns[1]] }))
  })

  test('gives the conversation a new title if it was the first message', async () => {
    const { id, one, turns } = await converse()
    const { sent } = await sayAndWait(one, 'A better question', {
      conversation: id,
      replaces: turns[0] ?? '',
    })
    expect(sent.conversation.title).toBe('A better question')
    expect(await said(one, id)).toHaveLength(2)
  })

  test('is stored once if it is sent again with the same client id', async () => {
    const { id, one, turns } = await converse()
    const more = { conversation: id, replaces: turns[0] ?? '', client_id: randomUUID() }
    const { sent } = await sayAndWait(one, 'Once.', more)
    expect((await say(one, 'Once.', more)).turn.id).toBe(sent.turn.id)
    await expect(say(one, 'Twice.', more)).rejects.toMatchObject({ data: { code: 'idempotency_key_reused' } })
    await expect(say(one, 'Late.', { ...more, client_id: randomUUID() })).rejects.toMatchObject(
      rejection('not_replaceable'),
    )
  })

  test('is rejected if another visitor sends it, as is a request for another answer', async () => {
    const { app, key, turns } = await converse()
    const stranger = await beginSession(app, key)
    const turn = turns[0] ?? ''
    for (const attempt of [
      say(stranger, 'Mine.', { replaces: turn }),
      stranger.visitor.regenerate.mutate({ turn, client_id: randomUUID() }),
      stranger.visitor.remove.mutate({ turn }),
    ])
      await expect(attempt).rejects.toMatchObject({ data: { httpStatus: 404 } })
  })
})

describe('another answer to the last message', () => {
  test('is added as a version, and the model receives only the newest one', async () => {
    const { id, one, turns } = await converse('Which? {{up:text Same.}}')
    const second = await regenerate(one, turns[1] ?? '')
    const third = await regenerate(one, second.turn)
    const opened = await one.visitor.open.query({ conversation: id })
    expect(opened.versions).toEqual([
      { turn: turns[1], by: second.turn },
      { turn: second.turn, by: third.turn },
    ])
    expect(opened.items.filter(({ text }) => text === 'Same.')).toHaveLength(3)
    await sayAndWait(one, 'Next.', { conversation: id })
    expect((await lastMessages()).slice(2)).toEqual(['Which? {{up:text Same.}}', 'Same.', 'Next.'])
  })

  test('is rejected for an earlier message and while a turn runs', async () => {
    const { id, one, turns } = await converse('Second.')
    await expect(regenerate(one, turns[0] ?? '')).rejects.toMatchObject(rejection('not_replaceable'))
    const { turn } = await say(one, 'Slow. {{up:hang-after 2}}', { conversation: id })
    await expect(regenerate(one, turn.id)).rejects.toMatchObject(rejection('conversation_locked'))
    await one.visitor.cancel.mutate({ turn: turn.id })
  })

  test('disappears with its versions when the message is edited', async () => {
    const { id, one, turns } = await converse()
    const { turn } = await regenerate(one, turns[0] ?? '')
    await sayAndWait(one, 'Instead. {{up:text Fine.}}', { conversation: id, replaces: turn })
    expect(await one.visitor.open.query({ conversation: id })).toMatchObject({
      versions: [],
      items: { length: 2 },
    })
  })
})

describe('a removed message', () => {
  test('is no longer sent to the model or shown to the visitor, and stays in the log', async () => {
    const { app, id, one, turns } = await converse('Second. {{up:text Two.}}', 'Third. {{up:text Three.}}')
    const before = await said(one, id)
    expect(await one.visitor.remove.mutate({ turn: turns[1] ?? '' })).toEqual({ removed: true })
    await one.visitor.remove.mutate({ turn: turns[1] ?? '' })
    expect(await said(one, id)).toEqual([...before.slice(0, 2), ...before.slice(4)])
    await sayAndWait(one, 'Fourth.', { conversation: id })
    expect(await lastMessages()).toEqual([...before.slice(0, 2), ...before.slice(4), 'Fourth.'])
    const { turns: logged, text } = await readLog(app, id)
    expect(logged.get(turns[1] ?? '')?.replaced).toEqual({ how: 'removed', by: null })
    expect(logged.get(turns[2] ?? '')?.previous_id).toBe(turns[0])
    expect(text).toContain('Two.')
  })

  test('can be the only one, and the next message follows an empty history', async () => {
    const { id, one, turns } = await converse()
    await one.visitor.remove.mutate({ turn: turns[0] ?? '' })
    expect(await one.visitor.open.query({ conversation: id })).toMatchObject({ items: [], turn: null })
    await sayAndWait(one, 'Again.', { conversation: id })
    expect(await lastMessages()).toEqual(['Again.'])
  })
})

describe('the feed', () => {
  test('contains each replacement before the items of the new turn, with unique cursors', async () => {
    const { id, one, turns } = await converse('Second.')
    const { turn } = await regenerate(one, turns[1] ?? '')
    await one.visitor.remove.mutate({ turn })
    let count = 0
    const events = await followUntil(one, { conversation: id, cursor: START }, ({ event }) => {
      if (event === 'conversation.replaced') count += 1
      return count === 2
    })
    expect(new Set(events.map((event) => event.id)).size).toBe(events.length)
    expect(events.filter(({ event }) => event === 'conversation.replaced').map(({ data }) => data)).toEqual([
      { how: 'regenerated', turns: [turns[1]], by: turn },
      { how: 'removed', turns: [turns[1], turn], by: null },
    ])
  })
})

describe('while or after a person answers', () => {
  test('earlier messages cannot be edited, removed or answered again', async () => {
    const { app, id, one, turns } = await converse()
    await change(app, id, 'takeover', { name: 'Ana' })
    await answer(app, id, 'Hello.', { name: 'Ana' })
    const [turn = ''] = turns
    const attempts = () => [
      () => say(one, 'Changed.', { conversation: id, replaces: turn }),
      () => one.visitor.regenerate.mutate({ turn, client_id: randomUUID() }),
      () => one.visitor.remove.mutate({ turn }),
    ]
    for (const attempt of attempts())
      await expect(attempt()).rejects.toMatchObject({
        data: { httpStatus: 409, code: 'wrong_mode', assignee: null },
      })
    await change(app, id, 'handback')
    for (const attempt of attempts())
      await expect(attempt()).rejects.toMatchObject(rejection('not_replaceable'))
  })
})
