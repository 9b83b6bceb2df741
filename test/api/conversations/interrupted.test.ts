/** Tests interrupted answers and how they are continued. */
import type OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../../support/chat-harness.ts'
import { collect, createKeeper, STORING } from '../../support/conversations.ts'
import { makeFolder } from '../../support/process.ts'
import { listTurns, openStream, sendChat } from '../../support/stored-chats.ts'
import { tool, toolCallResponse } from '../../support/tools.ts'

const harness = await startChatHarness()
const BROKEN = 'a b c {{up:usage never}}'

async function lastMessages() {
  const body = (await harness.listChats()).at(-1)?.body as { messages: { role: string; content: string }[] }
  return body.messages
}

const breaks = [
  ['the connection to the model breaks', '{{up:reset-after 3}}', 'stream_interrupted'],
  ['the model stalls', '{{up:hang-after 3}}', 'backend_timeout'],
] as const

describe.each(breaks)('a response that is interrupted because %s', (_what, script, code) => {
  test('is marked incomplete, keeps the text received so far, and can be continued', async () => {
    const app = await harness.start({ PARLEY_BACKEND_IDLE_SECONDS: '0.3' })
    const { owner, model } = await createKeeper(app)
    const stream = await owner.responses.create({ model, input: BROKEN + script, stream: true })
    const events: OpenAI.Responses.ResponseStreamEvent[] = await collect(stream)
    const text = events
      .flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : []))
      .join('')
    expect(text).not.toBe('')
    const last = events.at(-1) as OpenAI.Responses.ResponseIncompleteEvent
    expect(last).toMatchObject({
      type: 'response.incomplete',
      response: { status: 'incomplete', incomplete_details: { reason: 'interrupted' }, error: null },
    })
    const { id } = last.response
    expect(await owner.responses.retrieve(id)).toMatchObject({ status: 'incomplete', output_text: text })
    expect(await listTurns(app)).toMatchObject([
      { status: 'incomplete', reason: 'interrupted', error_code: code },
    ])
    const rest = await owner.responses.create({ model, previous_response_id: id, input: [] })
    expect(rest.status).toBe('completed')
    expect((await lastMessages()).filter(({ role }) => role === 'assistant')).toMatchObject([
      { content: text },
    ])
  })
})

test('a response that fails before its first output has the status failed and the error code', async () => {
  const app = await harness.start({ PARLEY_BACKEND_ATTEMPTS: '1' })
  const { owner, model } = await createKeeper(app)
  const { id } = await owner.responses.create({ model, input: '{{up:status 500}}', background: true })
  await collect(await owner.responses.retrieve(id, { stream: true }))
  expect(await owner.responses.retrieve(id)).toMatchObject({
    status: 'failed',
    error: { code: 'backend_error' },
  })
  expect(await listTurns(app)).toMatchObject([{ status: 'failed', error_code: 'backend_error' }])
})

test('a chat completion returns an error if the model fails after a tool has run', async () => {
  const weather = tool(async () => {
    await harness.upstream.script('/v1/chat/completions', '{{up:status 500}}')
    return 'Rain'
  })
  const app = await harness.start({ PARLEY_BACKEND_ATTEMPTS: '1' }, { tools: { weather } })
  const { agent_key: key } = await app.createAgent(`${STORING}tools: [weather]\n`)
  await harness.answerWith(toolCallResponse('whole', [{ name: 'weather', args: '{}' }]), 1)
  const failed = await sendChat(app, 'hello', { key, more: { stream: false } })
  expect([failed.status, failed.body.error.code]).toEqual([502, 'backend_error'])
  expect(await listTurns(app)).toMatchObject([{ status: 'incomplete', error_code: 'backend_error' }])
})

test('a turn that a shutdown interrupts is marked incomplete and keeps the text received so far', async () => {
  const folder = `${await makeFolder()}/data`
  const app = await harness.start({ PARLEY_DATA_DIR: folder })
  const { agent_id: id, agent_key: key } = await app.createAgent(STORING)
  const stream = await openStream(app, 'a b c {{up:hang-after 3}}{{up:usage never}}', { key })
  await stream.readEvents(2)
  const owner = app.key
  await app.close()
  const next = await harness.start({ PARLEY_DATA_DIR: folder })
  const [turn] = await listTurns(next)
  expect(turn).toMatchObject({ agent_id: id, status: 'incomplete', reason: 'interrupted', error_code: null })
  const path = `/v1/conversations/${turn?.conversation_id}/items?order=asc`
  const { body } = await next.call('GET', path, { key: owner })
  expect(body.data.at(-1)).toMatchObject({
    status: 'incomplete',
    content: [{ text: expect.stringContaining('Upstream') }],
  })
})
