/** Tests the export of conversations as JSON Lines. */
import { describe, expect, test } from 'vitest'
import { listAuditRows, publicIdOf } from '../../support/audit.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { STORING, storeChat } from '../../support/conversations.ts'
import { answer, change } from '../../support/handover.ts'

const harness = await startChatHarness()

async function start() {
  const app = await harness.start()
  const { agent_id: id } = await app.createAgent(STORING)
  const read = async (query = '') => {
    const { status, headers, text } = await app.call('GET', `/v1/conversations/export${query}`)
    expect(status, text).toBe(200)
    expect(headers.get('content-type')).toBe('application/jsonl')
    expect(text.endsWith('\n')).toBe(true)
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  }
  return { app, id, read, store: (text: string) => storeChat(app, id, text) }
}

describe('an export', () => {
  test('contains a line for each turn with all of its data, and ends with the number of turns', async () => {
    const { app, read, store } = await start()
    const first = await store('Hello one')
    const second = await store('Hello two')
    await app.call('PUT', `/v1/conversations/${first}/tags`, { body: { tags: ['vip'] } })
    await app.call('POST', `/v1/conversations/${first}/notes`, { body: { text: 'Called.' } })
    const { body: turns } = await app.call('GET', `/v1/conversations/${first}/turns`)
    const rating = { value: 'down', reason: 'incorrect', comment: 'No.' }
    await app.call('PUT', `/v1/turns/${turns.data[0].id}/rating`, { body: rating })
    const lines = await read()
    expect(lines).toMatchObject([
      {
        object: 'turn',
        id: turns.data[0].id,
        items: [{ role: 'user', content: [{ text: 'Hello one' }] }, { role: 'assistant' }],
        ratings: [{ ...rating, source: 'api' }],
        diagnostics: expect.any(Object),
        conversation: { id: first, parley: { tags: ['vip'], down: 1 }, notes: [{ text: 'Called.' }] },
      },
      { object: 'turn', conversation_id: second },
      { object: 'export.end', turns: 2 },
    ])
  })

  test('contains only the turns of conversations that match the filters', async () => {
    const { read, store } = await start()
    const first = await store('Hello wombat')
    await store('Hello quokka')
    expect(await read('?q=wombat')).toMatchObject([
      { conversation_id: first },
      { object: 'export.end', turns: 1 },
    ])
    expect(await read('?status=failed')).toEqual([{ object: 'export.end', turns: 0 }])
  })

  test('contains only one conversation if `q` is its id', async () => {
    const { read, store } = await start()
    await store('Hello wombat')
    const second = await store('Hello quokka')
    expect(await read(`?q=${second}`)).toMatchObject([
      { conversation_id: second },
      { object: 'export.end', turns: 1 },
    ])
    expect(await read(`?q=${second}&channel=widget`)).toEqual([{ object: 'export.end', turns: 0 }])
  })

  test("contains people's messages and visitors' messages to them in order among the turns", async () => {
    const { app, id: agent, read } = await start()
    const { body: created } = await app.call('POST', '/v1/conversations', {
      body: { items: [{ role: 'user', content: 'Before' }] },
    })
    const ask = async (input: string) => {
      const body = { model: `agent/${agent}`, input, conversation: created.id }
      expect((await app.call('POST', '/v1/responses', { body })).status).toBe(200)
    }
    await ask('One')
    await answer(app, created.id, 'From Ana', { name: 'Ana' })
    await change(app, created.id, 'handback')
    await ask('Two')
    await answer(app, created.id, 'Goodbye', { name: 'Ana' })
    const lines = await read()
    const authors = lines.map(({ object, items = [] }) => [
      object,
      ...items.map(({ parley }: { parley: { author: string } }) => parley.author),
    ])
    expect(authors).toEqual([
      ['conversation.items', 'visitor'],
      ['turn', 'visitor', 'model'],
      ['conversation.items', 'service', 'person', 'service'],
      ['turn', 'visitor', 'model'],
      ['conversation.items', 'service', 'person'],
      ['export.end'],
    ])
    expect(lines[2].items).toMatchObject([
      { parley: { mode: 'person', assignee: 'Ana' } },
      { content: [{ text: 'From Ana' }], parley: { name: 'Ana' } },
      { parley: { mode: 'model' } },
    ])
    expect(lines[2].conversation).toMatchObject({ id: created.id })
  })

  test('is recorded in the audit log without the search text', async () => {
    const { app, read } = await start()
    await read('?q=wombat&channel=api')
    const rows = (await listAuditRows(app)).filter(({ action }) => action === 'conversation.export')
    expect(rows).toMatchObject([{ actor: publicIdOf(app.key), target_id: publicIdOf(app.key) }])
    expect(JSON.parse(String(rows[0]?.details))).toEqual({ channel: 'api', has_search: true })
  })

  test('with an invalid filter is rejected before the first line', async () => {
    const { app } = await start()
    const answer = await app.call('GET', '/v1/conversations/export?q=-')
    expect(answer).toMatchObject({ status: 400, body: { error: { param: 'q' } } })
  })

  test('requires a parent key', async () => {
    const { app } = await start()
    const { agent_key: key } = await app.createAgent(STORING)
    expect((await app.call('GET', '/v1/conversations/export', { key })).status).toBe(403)
  })
})
