/** Tests /v1/conversations with the official client. */
import type OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { collect, createKeeper, failureOf } from '../../support/conversations.ts'

const message = (content: string) => ({ type: 'message' as const, role: 'user' as const, content })
const items: OpenAI.Responses.ResponseInputItem[] = [
  message('Hello.'),
  { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
  { type: 'function_call_output', call_id: 'c', output: 'x' },
  { type: 'reasoning', id: 'rs_1', summary: [] },
]

describe('a conversation', () => {
  test('can be created, read, changed and deleted', async () => {
    const client = (await startApp()).openai()
    const created: OpenAI.Conversations.Conversation = await client.conversations.create({
      items,
      metadata: { a: '1' },
    })
    expect(created).toMatchObject({
      object: 'conversation',
      metadata: { a: '1' },
      parley: {
        ...{ agent_id: null, visitor: null, channel: 'api', mode: 'model', assignee: null },
        ...{ title: 'Hello.', tags: [], turns: 0, up: 0, down: 0, cost: null },
        ...{ last_at: created.created_at, expires_at: expect.any(Number) },
      },
    })
    const { id } = created
    expect((await client.conversations.retrieve(id)).metadata).toEqual({ a: '1' })
    expect((await client.conversations.update(id, { metadata: { b: '2' } })).metadata).toEqual({ b: '2' })
    expect((await client.conversations.update(id, { metadata: null })).metadata).toEqual({})
    expect(await client.conversations.delete(id)).toMatchObject({ deleted: true })
    expect(await failureOf(client.conversations.retrieve(id))).toMatchObject({ status: 404 })
  })

  test('lists items of every type page by page, in either order', async () => {
    const client = (await startApp()).openai()
    const { id } = await client.conversations.create()
    const added = await client.conversations.items.create(id, { items })
    expect(added.data.map(({ type }) => type)).toEqual(items.map(({ type }) => type))
    for (const order of ['asc', 'desc'] as const) {
      const listed = await collect(client.conversations.items.list(id, { order, limit: 3 }))
      expect(order === 'asc' ? listed : listed.reverse()).toMatchObject(added.data)
    }
    const [first] = added.data as [OpenAI.Conversations.Message]
    expect(await client.conversations.items.retrieve(first.id, { conversation_id: id })).toMatchObject(first)
    await client.conversations.items.delete(first.id, { conversation_id: id })
    expect(await collect(client.conversations.items.list(id))).toHaveLength(items.length - 1)
  })

  test('accepts at most 20 items at once', async () => {
    const client = (await startApp()).openai()
    const request = client.conversations.create({ items: Array.from({ length: 21 }, () => message('a')) })
    const failure = await failureOf(request)
    expect(failure).toMatchObject({ status: 400, param: 'items' })
    expect(failure.message).toContain('at most 20')
  })

  test('cannot be read with an agent key (403) or with an unknown id (404)', async () => {
    const app = await startApp()
    const { owner, visitor } = await createKeeper(app)
    const { id } = await owner.conversations.create()
    expect(await failureOf(visitor.conversations.retrieve(id))).toMatchObject({ status: 403 })
    expect(await failureOf(owner.conversations.retrieve('conv_x'))).toMatchObject({ status: 404 })
  })

  test('appears in a paginated list, newest first', async () => {
    const app = await startApp()
    const client = app.openai()
    const ids: string[] = []
    for (let count = 0; count < 3; count++) ids.unshift((await client.conversations.create()).id)
    const list = async (query: string) => (await app.call('GET', `/v1/conversations?${query}`)).body
    const first = await list('limit=2')
    expect(first).toMatchObject({ data: [{ id: ids[0] }, { id: ids[1] }], has_more: true, last_id: ids[1] })
    expect(await list(`limit=2&after=${ids[1]}`)).toMatchObject({ data: [{ id: ids[2] }], has_more: false })
    expect((await list('order=asc')).data[0].id).toBe(ids[2])
    expect((await list('agent=agent-x')).data).toEqual([])
  })
})
