/** Tests which stored turns the model receives with a new turn of a conversation or a chain. */
import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { createKeeper, failureOf } from '../../support/conversations.ts'
import { makeFolder } from '../../support/process.ts'
import { findText, listItems, listTurns, sendChat } from '../../support/stored-chats.ts'

const harness = await startChatHarness()

async function start(env: Readonly<Record<string, string>> = {}) {
  const app = await harness.start(env)
  return { app, ...(await createKeeper(app)) }
}

/** Returns the texts of the last request to the model, without the agent's instructions. */
async function lastTexts(): Promise<string[]> {
  const body = (await harness.listChats()).at(-1)?.body as { messages: { content: string }[] }
  return body.messages.map(({ content }) => content).filter((content) => content !== 'Keep.')
}

const say = (text: string) => `{{up:text ${text}!}} ${text}`

describe('the history of a conversation', () => {
  test('does not include branches that start with previous_response_id', async () => {
    const { app, owner, model } = await start()
    const { id } = await owner.conversations.create()
    const first = await owner.responses.create({ model, conversation: id, input: say('one') })
    const branch = await owner.responses.create({
      model,
      previous_response_id: first.id,
      input: say('aside'),
    })
    await owner.responses.create({ model, conversation: id, input: 'two' })
    expect(await lastTexts()).toEqual([say('one'), 'one!', 'two'])
    await owner.responses.create({ model, previous_response_id: branch.id, input: 'further' })
    expect(await lastTexts()).toEqual([say('one'), 'one!', say('aside'), 'aside!', 'further'])
    expect((await listTurns(app)).map((turn) => [turn.number, turn.conversation_id])).toEqual(
      [1, 2, 3, 4].map((number) => [number, id]),
    )
  })

  test('is sent to the model only up to the branch point if a response continues an earlier one with previous_response_id', async () => {
    const { owner, model } = await start()
    const { id } = await owner.conversations.create({ items: [{ role: 'user', content: 'before' }] })
    await owner.responses.create({ model, conversation: id, input: say('one') })
    const second = await owner.responses.create({ model, conversation: id, input: say('two') })
    await owner.conversations.items.create(id, { items: [{ role: 'user', content: 'later' }] })
    await owner.responses.create({ model, previous_response_id: second.id, input: 'aside' })
    expect(await lastTexts()).toEqual(['before', say('one'), 'one!', say('two'), 'two!', 'aside'])
  })

  test('does not include a branch even after the turn before the branch is deleted', async () => {
    const { owner, model } = await start()
    const { id } = await owner.conversations.create()
    const first = await owner.responses.create({ model, conversation: id, input: say('one') })
    await owner.responses.create({ model, previous_response_id: first.id, input: say('aside') })
    await owner.responses.create({ model, conversation: id, input: say('two') })
    await owner.delete(`/responses/${first.id}`)
    await owner.responses.create({ model, conversation: id, input: 'three' })
    expect(await lastTexts()).toEqual([say('two'), 'two!', 'three'])
  })

  test('includes the rest of an interrupted answer that was continued with previous_response_id', async () => {
    const { owner, model } = await start()
    const { id } = await owner.conversations.create()
    const input = 'one {{up:usage never}}{{up:reset-after 3}}'
    const cut = await owner.responses.create({ model, conversation: id, input, background: true })
    for await (const _event of await owner.responses.retrieve(cut.id, { stream: true }));
    await harness.answerWith({ choices: [{ message: { role: 'assistant', content: 'the rest' } }] }, 1)
    await owner.responses.create({ model, previous_response_id: cut.id, input: [] })
    await owner.responses.create({ model, conversation: id, input: 'two' })
    expect((await lastTexts()).slice(-2)).toEqual(['the rest', 'two'])
  })

  test('is read again if another turn ends between the first read and the lock', async () => {
    const { app, owner, model } = await start()
    const { id } = await owner.conversations.create()
    const { reader } = app.service.deps.conversations
    const readHistory = reader.readHistory.bind(reader)
    let isFirst = true
    reader.readHistory = async (...from) => {
      const items = await readHistory(...from)
      if (!isFirst) return items
      isFirst = false
      await owner.responses.create({ model, conversation: id, input: say('between') })
      return items
    }
    await owner.responses.create({ model, conversation: id, input: 'last' })
    expect(await lastTexts()).toEqual([say('between'), 'between!', 'last'])
    expect((await listTurns(app)).map(({ number, status }) => [number, status])).toEqual([
      [1, 'completed'],
      [2, 'completed'],
    ])
  })
})

describe('a request with `store: false`', () => {
  const CANARY = 'quokka-4471'

  /** Asserts that the model receives the stored history and that the server stores no part of the request. */
  async function expectUnstored(app: TestApp, folder: string, send: () => Promise<object>) {
    const before = [await listTurns(app), await listItems(app)]
    const response = await send()
    expect(response).toMatchObject({ status: 'completed', store: false })
    expect(await lastTexts()).toEqual([say('one'), 'one!', CANARY])
    expect([await listTurns(app), await listItems(app)]).toEqual(before)
    expect(await findText(app, folder, CANARY)).toEqual([])
    return response
  }

  test('reads the previous response and stores nothing', async () => {
    const folder = `${await makeFolder()}/data`
    const { app, visitor } = await start({ PARLEY_DATA_DIR: folder })
    const { id } = await visitor.responses.create({ input: say('one') })
    const response = await expectUnstored(app, folder, () =>
      visitor.responses.create({ previous_response_id: id, input: CANARY, store: false }),
    )
    expect(response).toMatchObject({ previous_response_id: id })
  })

  test('reads the conversation and stores nothing', async () => {
    const folder = `${await makeFolder()}/data`
    const { app, owner, model } = await start({ PARLEY_DATA_DIR: folder })
    const { id } = await owner.conversations.create()
    await owner.responses.create({ model, conversation: id, input: say('one') })
    const response = await expectUnstored(app, folder, () =>
      owner.responses.create({ model, conversation: id, input: CANARY, store: false }),
    )
    expect(response).toMatchObject({ conversation: { id } })
  })

  test('can refer to an item of an interrupted response', async () => {
    const { visitor } = await start()
    const one = await visitor.responses.create({ input: say('one'), max_output_tokens: 1 })
    const item = { type: 'item_reference' as const, id: (one.output[0] as { id: string }).id }
    await visitor.responses.create({ input: [item, { role: 'user', content: 'b' }], store: false })
    expect(await lastTexts()).toEqual(['one!', 'b'])
  })

  test('fails with the same errors as a stored one', async () => {
    const { app, visitor } = await start()
    const send = (more: object) =>
      failureOf(visitor.responses.create({ input: 'a', store: false, ...more } as never))
    expect(await send({ previous_response_id: 'resp_x' })).toMatchObject({
      status: 400,
      code: 'previous_response_not_found',
    })
    expect(await send({ conversation: 'conv_x' })).toMatchObject({ status: 403, code: 'visitor_required' })
    const { visitor: other } = await createKeeper(app, 'name: B\ninstructions: C\n')
    const request = other.responses.create({ input: 'a', store: false, previous_response_id: 'resp_x' })
    expect(await failureOf(request)).toMatchObject({ status: 400, code: 'conversations_off' })
  })
})

describe('the input of a stored turn', () => {
  const MIB = 1024 * 1024
  const env = { PARLEY_MAX_BODY_BYTES: String(16 * MIB) }
  const part = (text: string) => ({ type: 'text', text })
  const large = (count: number) => Array.from({ length: count }, () => part('x'.repeat(MIB)))

  test('is rejected with 413 if it exceeds 4 MiB, with an error that names the field and the limit', async () => {
    const { app, owner, model } = await start(env)
    const messages = Array.from({ length: 8 }, () => ({
      role: 'user' as const,
      content: 'x'.repeat(MIB / 2),
    }))
    const response = await failureOf(owner.responses.create({ model, input: messages }))
    expect(response).toMatchObject({ status: 413, code: 'too_large', param: 'input' })
    expect(response.message).toContain('input: the new items must be at most 4194304 bytes in a stored turn')
    const chat = await sendChat(app, '', { more: { model, messages } })
    expect([chat.status, chat.body.error.param]).toEqual([413, 'messages'])
    expect(chat.body.error.message).toContain('4194304 bytes')
    expect((await sendChat(app, '', { more: { model, messages, store: false } })).status).toBe(200)
  })

  test('is rejected with 413 if an item exceeds 2 MiB, with an error that names the item and the limit', async () => {
    const { app, model } = await start(env)
    const messages = [
      { role: 'assistant', content: 'a' },
      { role: 'user', content: 'b' },
      { role: 'user', content: large(3) },
    ]
    const { status, body } = await sendChat(app, '', { more: { model, messages } })
    expect([status, body.error.code, body.error.param]).toEqual([413, 'too_large', 'messages[2]'])
    expect(body.error.message).toContain('must be at most 2097152 bytes')
    expect(await listTurns(app)).toEqual([])
  })
})
