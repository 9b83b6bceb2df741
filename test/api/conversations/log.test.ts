/** Tests the filters and the search of the conversation list, and the tags and notes of conversations. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { conversationMigrations } from '../../../src/db/conversations/migrations.ts'
import type { TestApp } from '../../support/app.ts'
import { publicIdOf } from '../../support/audit.ts'
import { chatRequest, startChatHarness } from '../../support/chat-harness.ts'
import { STORING, storeChat } from '../../support/conversations.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { answer, change } from '../../support/handover.ts'
import { changeManager, createKey } from '../../support/managed-keys.ts'
import { tool } from '../../support/tools.ts'
import { beginSession, say, sayAndWait } from '../../support/visitors.ts'

const harness = await startChatHarness()

async function start(yaml = STORING, options = {}) {
  const clock = createFakeClock()
  const app = await harness.start({}, { clock, ...options })
  const { agent_id: id, agent_key: key } = await app.createAgent(yaml)
  const find = async (query: Record<string, string | number>) => {
    const text = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))
    const { status, body } = await app.call('GET', `/v1/conversations?${text}`)
    expect(status, JSON.stringify(body)).toBe(200)
    return body.data.map((one: { id: string }) => one.id)
  }
  return { app, clock, id, key, find, store: (text: string) => storeChat(app, id, text) }
}

/** Makes the model answer the next request with a text. */
function answerWith(content: string, finish_reason = 'stop', more: object = {}): Promise<void> {
  const message = { role: 'assistant', content, ...more }
  return harness.answerWith(
    { id: 'a', created: 1, model: 'up-chat', choices: [{ index: 0, finish_reason, message }] },
    1,
  )
}

const rejectionOf = async (app: TestApp, query: string) => {
  const { status, body } = await app.call('GET', `/v1/conversations?${query}`)
  return { status, message: body.error?.message }
}

describe('the filters of the conversation list', () => {
  test('select conversations by agent, time, channel, mode, visitor and tokens, and can be combined', async () => {
    const { app, clock, id, key, find, store } = await start()
    const first = await store('Hello there')
    const second = Math.floor(clock.now() / 1000) + 100
    clock.advance(100)
    const visitor = await beginSession(app, key)
    const { conversation } = await say(visitor, 'Hello')
    await expect.poll(() => find({ status: 'in_progress' })).toEqual([])
    expect(await find({})).toEqual([conversation.id, first])
    expect(await find({ agent: id, order: 'asc' })).toEqual([first, conversation.id])
    expect(await find({ agent: 'agent-x' })).toEqual([])
    expect(await find({ from: second })).toEqual([conversation.id])
    expect(await find({ to: second })).toEqual([first])
    expect(await find({ channel: 'widget' })).toEqual([conversation.id])
    expect(await find({ channel: 'api' })).toEqual([first])
    expect(await find({ mode: 'model' })).toEqual([conversation.id, first])
    expect(await find({ mode: 'person' })).toEqual([])
    expect(await find({ visitor: visitor.id })).toEqual([conversation.id])
    const { body } = await app.call('GET', `/v1/conversations/${first}`)
    const tokens = body.parley.prompt_tokens + body.parley.completion_tokens
    expect(await find({ min_tokens: tokens, channel: 'api' })).toEqual([first])
    expect(await find({ min_tokens: tokens + 1, channel: 'api' })).toEqual([])
    expect(await find({ channel: 'widget', to: second })).toEqual([])
  })

  test('select conversations by the person who answers, also for the caller', async () => {
    const { app, find, store } = await start()
    const [mine, hers] = [await store('Hello'), await store('Hello')]
    await store('Hello')
    await change(app, mine, 'takeover')
    await change(app, hers, 'takeover', { name: 'Ana' })
    expect(await find({ assignee: 'me' })).toEqual([mine])
    expect(await find({ assignee: 'Ana' })).toEqual([hers])
    expect(await find({ assignee: 'Ana', mode: 'waiting' })).toEqual([])
    const { text } = await app.call('GET', '/v1/conversations/export?assignee=me')
    expect(text).toContain(mine)
    expect(text).not.toContain(hers)
  })

  test('select a tag that is written with combining marks', async () => {
    const { app, find, store } = await start()
    const id = await store('Hello')
    await app.call('PUT', `/v1/conversations/${id}/tags`, { body: { tags: ['caf\u00e9'] } })
    expect(await find({ tag: 'cafe\u0301' })).toEqual([id])
  })

  test('select conversations by the status, reason, error, model and version of one turn', async () => {
    const { app, id, find, store } = await start()
    const good = await store('Hello')
    await answerWith('Half', 'length')
    const long = await store('Hello')
    await app.call('PUT', `/v1/agents/${id}`, { body: { yaml: STORING.replace('Keep.', 'Keep it.') } })
    const body = chatRequest('{{up:status 400}}', { model: `agent/${id}` })
    expect((await app.call('POST', '/v1/chat/completions', { body })).status).toBeGreaterThanOrEqual(400)
    const [failed] = await find({ status: 'failed' })
    expect(await find({ status: 'completed' })).toEqual([good])
    expect(await find({ status: 'incomplete' })).toEqual([long])
    expect(await find({ reason: 'max_output_tokens' })).toEqual([long])
    const { data: turns } = (await app.call('GET', `/v1/conversations/${failed}/turns`)).body
    expect(await find({ error: turns[0].error_code })).toEqual([failed])
    expect(await find({ error: 'other' })).toEqual([])
    expect(await find({ version: 1 })).toEqual([long, good])
    expect(await find({ version: 2 })).toEqual([failed])
    expect(await find({ version: 2, status: 'completed' })).toEqual([])
    const { model, provider } = (await app.call('GET', `/v1/conversations/${good}/turns`)).body.data[0]
    expect(await find({ model })).toEqual([long, good])
    expect(await find({ model: `${provider}/${model}` })).toEqual([long, good])
    expect(await find({ model: 'other' })).toEqual([])
  })

  test('select answers that an error cut off with the status `failed`, and conversations count them as failures', async () => {
    const { app, key, find, store } = await start()
    await store('Hello')
    const visitor = await beginSession(app, key)
    const { conversation } = await say(visitor, 'a b c d {{up:cut-off 3}}')
    const { id } = conversation
    await expect.poll(() => find({ status: 'incomplete' })).toEqual([id])
    expect(await find({ status: 'failed' })).toEqual([id])
    expect(await find({ status: 'failed', version: 2 })).toEqual([])
    const read = async () => (await app.call('GET', `/v1/conversations/${id}`)).body.parley
    const ended = { failures: 1, last_status: 'incomplete', last_error_code: 'stream_interrupted' }
    expect(await read()).toMatchObject(ended)
    // An earlier version has not counted such turns.
    const { write } = await app.service.deps.conversations.storage.open()
    await write.updateTable('conversations').set({ failures: 0 }).execute()
    await conversationMigrations['1012_count_cut_off_turns']?.up(write)
    expect(await read()).toMatchObject(ended)
    const { body } = await app.call('GET', '/v1/conversations?channel=api')
    expect(body.data[0].parley).toMatchObject({ failures: 0, last_error_code: null })
  })

  test('select conversations whose newest message is a question, with the status `unanswered`', async () => {
    const { app, id, find, store } = await start()
    await store('Hello')
    const { body: empty } = await app.call('POST', '/v1/conversations', { body: {} })
    const ask = (input: string) =>
      app.call('POST', '/v1/responses', {
        body: { model: `agent/${id}`, input, conversation: empty.id },
      })
    expect(await find({ status: 'unanswered' })).toEqual([])
    expect((await ask('{{up:status 400}}')).status).toBeGreaterThanOrEqual(400)
    expect(await find({ status: 'unanswered' })).toEqual([empty.id])
    expect((await ask('Hello')).status).toBe(200)
    expect(await find({ status: 'unanswered' })).toEqual([])
    expect(await find({ status: 'failed' })).toEqual([empty.id])
  })

  test('omit conversations that people answer or have answered, with the status `unanswered`', async () => {
    const { app, clock, key, find } = await start()
    const visitor = await beginSession(app, key)
    const sent = await say(visitor, '{{up:status 400}}')
    const { id } = sent.conversation
    const unanswered = () => find({ status: 'unanswered' })
    await expect.poll(unanswered).toEqual([id])
    await change(app, id, 'takeover')
    expect(await unanswered()).toEqual([])
    await change(app, id, 'handback')
    expect(await unanswered()).toEqual([id])
    await answer(app, id, 'We are open until 8 p.m.')
    await change(app, id, 'handback')
    expect(await unanswered()).toEqual([])
    await change(app, id, 'takeover')
    await visitor.visitor.send.mutate({ conversation: id, client_id: randomUUID(), text: 'And on Sunday?' })
    expect(await unanswered()).toEqual([])
    const pass = () => {
      clock.advance(600)
      return app.service.deps.conversations.sweep(false)
    }
    await pass()
    expect(await find({ mode: 'waiting' })).toEqual([id])
    expect(await unanswered()).toEqual([])
    await pass()
    expect(await find({ mode: 'model' })).toEqual([id])
    expect(await unanswered()).toEqual([id])
  })

  test('omit conversations with a running turn or a removed question, with the status `unanswered`', async () => {
    const { app, key, find } = await start()
    const visitor = await beginSession(app, key)
    const answered = await sayAndWait(visitor, 'Hello')
    const { id } = answered.sent.conversation
    const unanswered = () => find({ status: 'unanswered' })
    const running = await say(visitor, '{{up:hang-after 4}}', { conversation: id })
    expect(await find({ status: 'in_progress' })).toEqual([id])
    expect(await unanswered()).toEqual([])
    await visitor.visitor.cancel.mutate({ turn: running.turn.id })
    await expect.poll(() => find({ status: 'in_progress' })).toEqual([])
    const failed = await say(visitor, '{{up:status 400}}', { conversation: id })
    await expect.poll(() => find({ status: 'failed' })).toEqual([id])
    expect(await unanswered()).toEqual([id])
    await visitor.visitor.remove.mutate({ turn: failed.turn.id })
    expect(await unanswered()).toEqual([])
  })

  test('select conversations by the tools that a turn called', async () => {
    const { find, store } = await start(
      'name: A\ninstructions: B.\ntools: [weather]\nconversations: { keep: 30d }\n',
      { tools: { weather: tool(async () => 'Sunny') } },
    )
    const called = await store('{{up:first 1}}{{up:tool weather {}}}')
    await store('Hello')
    expect(await find({ tool: 'weather' })).toEqual([called])
    expect(await find({ tool: 'other' })).toEqual([])
  })

  test('are rejected with an error that names the invalid filter', async () => {
    const { app } = await start()
    expect(await rejectionOf(app, 'status=odd')).toMatchObject({
      status: 400,
      message: expect.stringContaining('status'),
    })
    expect(await rejectionOf(app, 'limit=101')).toMatchObject({ status: 400 })
    expect(await rejectionOf(app, `q=${'a'.repeat(201)}`)).toEqual({
      status: 400,
      message: 'q: must be at most 200 characters',
    })
    const many = Array.from({ length: 17 }, (_, index) => `w${index}`).join('+')
    expect(await rejectionOf(app, `q=${many}`)).toEqual({
      status: 400,
      message: 'q: must have at most 16 terms (got 17)',
    })
    for (const q of ['-hotel', '%22%22', '...'])
      expect(await rejectionOf(app, `q=${q}`)).toEqual({
        status: 400,
        message: 'q: must contain a word to search for',
      })
  })

  test('return all matching conversations page by page', async () => {
    const { app, find } = await start()
    const ids: string[] = []
    for (let count = 0; count < 7; count++) {
      const items = [{ role: 'user', content: `${count % 2 === 0 ? 'Even' : 'Odd'} message` }]
      ids.unshift((await app.call('POST', '/v1/conversations', { body: { items } })).body.id)
    }
    const even = ids.filter((_, index) => index % 2 === 0)
    const first = await find({ q: 'even', limit: 2 })
    const second = await find({ q: 'even', limit: 2, after: first[1] })
    expect([...first, ...second]).toEqual(even)
    expect(await find({ q: 'even', limit: 2, after: second[1] })).toEqual([])
  })
})

describe('a conversation search', () => {
  test('finds text from users and from the model, but not tool results or reasoning', async () => {
    const { find, store } = await start(
      'name: A\ninstructions: B.\ntools: [weather]\nconversations: { keep: 30d }\n',
      {
        tools: {
          weather: tool(async () => {
            // Without this, the model would repeat the result.
            await answerWith('Done')
            return 'toolresult'
          }),
        },
      },
    )
    const id = await store('{{up:first 1}}{{up:tool weather {"city":"Oslo"}}}Question')
    await answerWith('Antwort größer', 'stop', { reasoning_content: 'thoughts' })
    const other = await store('Asked')
    expect(await find({ q: 'QUESTION' })).toEqual([id])
    expect(await find({ q: 'antwort "großer"' })).toEqual([other])
    // All words must be in the same message.
    expect(await find({ q: 'antwort asked' })).toEqual([])
    expect(await find({ q: 'asked' })).toEqual([other])
    for (const q of ['toolresult', 'thoughts']) expect(await find({ q }), q).toEqual([])
  })

  test('returns the matching item and the text around the match', async () => {
    const { app } = await start()
    const content = `${'before '.repeat(30)}Ｔｈｅ Crème brûlée\n\nwas late ${'after '.repeat(40)}`
    const items = [
      { role: 'user', content: 'Hello' },
      { role: 'user', content },
    ]
    const { body: created } = await app.call('POST', '/v1/conversations', { body: { items } })
    const { body: listed } = await app.call('GET', `/v1/conversations/${created.id}/items?order=asc`)
    const { body } = await app.call('GET', '/v1/conversations?q=creme+brul*')
    expect(body.data).toMatchObject([
      {
        id: created.id,
        match: {
          item_id: listed.data[1].id,
          snippet: expect.stringMatching(/^…before .*Ｔｈｅ Crème brûlée was late after .*…$/),
        },
      },
    ])
    expect(body.data[0].match.snippet.length).toBeLessThan(170)
    const { body: all } = await app.call('GET', '/v1/conversations')
    expect(all.data[0]).not.toHaveProperty('match')
  })

  test('finds a word in a text without spaces', async () => {
    const { find, store } = await start()
    const id = await store('研究生命科学')
    expect(await find({ q: '生命' })).toEqual([id])
    expect(await find({ q: '究生' })).toEqual([id])
    expect(await find({ q: '命生' })).toEqual([])
  })

  test('finds a conversation by its id', async () => {
    const { find, store } = await start()
    const id = await store('Hello')
    await store('Hello')
    expect(await find({ q: id })).toEqual([id])
    expect(await find({ q: id.slice(0, -1) + (id.endsWith('a') ? 'b' : 'a') })).toEqual([])
  })

  test('finds an item that was added later until it is deleted', async () => {
    const { app, find } = await start()
    const items = [{ role: 'user', content: 'Wombat' }]
    const { body: created } = await app.call('POST', '/v1/conversations', { body: {} })
    const path = `/v1/conversations/${created.id}/items`
    const { body: added } = await app.call('POST', path, { body: { items } })
    expect(await find({ q: 'wombat' })).toEqual([created.id])
    await app.call('DELETE', `${path}/${added.data[0].id}`)
    expect(await find({ q: 'wombat' })).toEqual([])
  })

  test("does not find another tenant's conversations, and other requests for them return 404", async () => {
    const { app, store } = await start()
    const id = await store('Wombat')
    await changeManager(app, { can_manage_keys: true })
    const { key } = await createKey(app)
    for (const query of ['', '?q=wombat', `?q=${id}`])
      expect((await app.call('GET', `/v1/conversations${query}`, { key })).body.data).toEqual([])
    const { body: turns } = await app.call('GET', `/v1/conversations/${id}/turns`)
    const turn = turns.data[0].id
    const calls: [method: string, path: string, body?: object][] = [
      ['GET', `/v1/conversations/${id}/turns`],
      ['GET', `/v1/turns/${turn}`],
      ['PUT', `/v1/conversations/${id}/tags`, { tags: ['a'] }],
      ['GET', `/v1/conversations/${id}/notes`],
      ['POST', `/v1/conversations/${id}/notes`, { text: 'a' }],
      ['PUT', `/v1/turns/${turn}/rating`, { value: 'up' }],
      ['DELETE', `/v1/turns/${turn}/rating`],
    ]
    for (const [method, path, body] of calls)
      expect((await app.call(method, path, { key, body })).status, path).toBe(404)
    const { text } = await app.call('GET', '/v1/conversations/export', { key })
    expect(text).toBe('{"object":"export.end","turns":0}\n')
  })
})

describe('tags', () => {
  test('replace the earlier tags, and the conversation list can be filtered by them', async () => {
    const { app, find, store } = await start()
    const id = await store('Hello')
    const set = (tags: unknown) => app.call('PUT', `/v1/conversations/${id}/tags`, { body: { tags } })
    expect((await set(['refund', ' late ', 'refund'])).body.parley.tags).toEqual(['late', 'refund'])
    expect(await find({ tag: 'late' })).toEqual([id])
    expect((await set(['vip'])).body.parley.tags).toEqual(['vip'])
    expect(await find({ tag: 'late' })).toEqual([])
    const { body } = await app.call('GET', '/v1/conversations?tag=vip')
    expect(body.data[0].parley.tags).toEqual(['vip'])
    expect((await set([])).body.parley.tags).toEqual([])
  })

  test('are rejected if there are more than 20, or if one is empty, too long or contains U+0000', async () => {
    const { app, store } = await start()
    const id = await store('Hello')
    const set = async (tags: unknown) =>
      (await app.call('PUT', `/v1/conversations/${id}/tags`, { body: { tags } })).status
    expect(await set(Array.from({ length: 21 }, (_, index) => `t${index}`))).toBe(400)
    expect(await set(['a'.repeat(41)])).toBe(400)
    expect(await set([' '])).toBe(400)
    expect(await set(['a\u0000b'])).toBe(400)
    expect(await set(Array.from({ length: 20 }, (_, index) => `${index}`.padEnd(40, 'é')))).toBe(200)
  })
})

describe('notes', () => {
  test('can be added, listed and deleted', async () => {
    const { app, store } = await start()
    const path = `/v1/conversations/${await store('Hello')}/notes`
    const { body: note } = await app.call('POST', path, { body: { text: ' Called back. ' } })
    expect(note).toMatchObject({ author: publicIdOf(app.key), text: 'Called back.' })
    const { body: second } = await app.call('POST', path, { body: { text: 'x'.repeat(4_000) } })
    expect((await app.call('GET', path)).body.data.map(({ id }: { id: string }) => id).sort()).toEqual(
      [note.id, second.id].sort(),
    )
    expect((await app.call('DELETE', `${path}/${note.id}`)).body).toMatchObject({ deleted: true })
    expect((await app.call('DELETE', `${path}/${note.id}`)).status).toBe(404)
    expect((await app.call('GET', path)).body.data).toEqual([second])
    expect((await app.call('POST', path, { body: { text: 'x'.repeat(4_001) } })).status).toBe(400)
    for (const text of [' ', 'a\u0000b', 'a\ud800b'])
      expect((await app.call('POST', path, { body: { text } })).status).toBe(400)
  })

  test('are limited to 200 for each conversation', async () => {
    const { app, store } = await start()
    const id = await store('Hello')
    const { write } = await app.service.deps.conversations.storage.open()
    const rows = Array.from({ length: 200 }, (_, index) => ({
      ...{ id: `note_${index}`, conversation_id: id, author: 'a', text: 'b', created_at: index },
    }))
    await write.insertInto('conversation_notes').values(rows).execute()
    const answer = await app.call('POST', `/v1/conversations/${id}/notes`, { body: { text: 'c' } })
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'notes_full' } } })
  })
})
