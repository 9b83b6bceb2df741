/** Tests the errors of stored responses and conversations for limits, locks and running turns. */
import type OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createKeeper, failureOf } from '../../support/conversations.ts'
import { openConversations } from '../../support/stored-chats.ts'

const harness = await startChatHarness()
const HANGING = '{{up:hang-after 2}}'
const MIB = 1024 * 1024

async function start(env: Readonly<Record<string, string>> = {}) {
  const app = await harness.start(env)
  return { app, ...(await createKeeper(app)) }
}

const message = (content: string) => ({ role: 'user' as const, content })

describe('above PARLEY_CONVERSATIONS_MAX_BYTES', () => {
  test('every request that depends on the store returns 507 storage_full', async () => {
    const { owner, model } = await start({ PARLEY_CONVERSATIONS_MAX_BYTES: '2000' })
    const { id: conversation } = await owner.conversations.create()
    const { id } = await owner.responses.create({ model, input: 'a'.repeat(1_000) })
    const full = { status: 507, code: 'storage_full' }
    for (const more of [{ background: true }, { previous_response_id: id }, { conversation }])
      expect(await failureOf(owner.responses.create({ model, input: 'b', ...more }))).toMatchObject(full)
    expect(await failureOf(owner.conversations.create())).toMatchObject(full)
    const items = [message('c')]
    expect(await failureOf(owner.conversations.items.create(conversation, { items }))).toMatchObject(full)
    expect(await harness.listChats()).toHaveLength(1)
  })
})

describe('while a response runs', () => {
  const running = { background: true, input: HANGING }

  test('a request to continue from it returns 409 response_in_progress with Retry-After', async () => {
    const { visitor, owner } = await start()
    const { id } = await visitor.responses.create(running)
    const client = visitor.withOptions({ maxRetries: 0 })
    const failure = await failureOf(client.responses.create({ input: 'a', previous_response_id: id }))
    expect(failure).toMatchObject({
      status: 409,
      code: 'response_in_progress',
      param: 'previous_response_id',
    })
    expect(failure.headers?.get('retry-after')).toBe('1')
    await owner.responses.cancel(id)
  })

  test('another request in its conversation returns 409 conversation_locked with Retry-After', async () => {
    const { owner, model } = await start()
    const { id: conversation } = await owner.conversations.create()
    const { id } = await owner.responses.create({ model, conversation, ...running })
    const client = owner.withOptions({ maxRetries: 0 })
    for (const input of ['a', []]) {
      const failure = await failureOf(client.responses.create({ model, conversation, input }))
      expect(failure).toMatchObject({ status: 409, code: 'conversation_locked' })
      expect(failure.headers?.get('retry-after')).toBe('1')
    }
    await owner.responses.cancel(id)
  })
})

describe('adding to a full conversation', () => {
  async function fill(column: 'turns' | 'items', count: number) {
    const { app, owner, model } = await start()
    const { id: conversation } = await owner.conversations.create()
    const { id } = await owner.responses.create({ model, conversation, input: 'a' })
    const db = await openConversations(app)
    await db
      .updateTable('conversations')
      .set({ [column]: count })
      .where('id', '=', conversation)
      .execute()
    return { owner, model, conversation, id }
  }

  const expectFull = async (request: Promise<unknown>) =>
    expect(await failureOf(request)).toMatchObject({
      status: 409,
      code: 'conversation_full',
      message: expect.stringContaining('1000 turns and 10000 items'),
    })

  test.each([
    ['turns', 1_000],
    ['items', 10_000],
  ] as const)(
    'returns 409 conversation_full for a new response at the limit of %s',
    async (column, count) => {
      const { owner, model, conversation, id } = await fill(column, count)
      await expectFull(owner.responses.create({ model, input: 'b', conversation }))
      await expectFull(owner.responses.create({ model, input: 'b', previous_response_id: id }))
      expect(await harness.listChats()).toHaveLength(1)
    },
  )

  test('returns 409 conversation_full for items above the limit and stores none of them', async () => {
    const { owner, conversation } = await fill('items', 9_999)
    const before = (await owner.conversations.items.list(conversation)).data.length
    await expectFull(owner.conversations.items.create(conversation, { items: [message('a'), message('b')] }))
    await owner.conversations.items.create(conversation, { items: [message('a')] })
    expect((await owner.conversations.items.list(conversation)).data).toHaveLength(before + 1)
  })
})

test('a request with an item larger than 2 MiB returns 413 with the position of the item and the limit', async () => {
  const { owner } = await start({ PARLEY_MAX_BODY_BYTES: String(16 * MIB) })
  const { id } = await owner.conversations.create()
  const content = Array.from({ length: 3 }, () => ({
    type: 'input_text' as const,
    text: 'x'.repeat(MIB),
  }))
  const items: OpenAI.Responses.ResponseInputItem[] = [message('a'), { role: 'user', content }]
  for (const request of [
    owner.conversations.create({ items }),
    owner.conversations.items.create(id, { items }),
  ]) {
    const failure = await failureOf(request)
    expect(failure).toMatchObject({ status: 413, code: 'too_large' })
    expect(failure.param).toBe('items[1]')
    expect(failure.message).toContain('must be at most 2097152 bytes')
  }
})
