/** Tests which turns the owner of a conversation can read. */
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { KEEPER, runTurn } from '../../support/storing-chat.ts'
import { tool } from '../../support/tools.ts'

const NOWHERE = `turn_${'0'.repeat(24)}`

async function startKeeper() {
  const weather = tool(() => ({ degrees: 21 }), { description: 'The weather.' })
  const app = await startApp({}, { tools: { weather } })
  const agent = await app.createAgent(`${KEEPER}tools: [weather]\n`)
  return { app, ...agent }
}

describe('a turn', () => {
  test('contains its status, model, tokens, times and diagnostics', async () => {
    const { app, agent_id, agent_key } = await startKeeper()
    const { turn, conversation, responseId } = await runTurn(app, agent_key, 'Hello')
    const { status, body, text } = await app.call('GET', `/v1/turns/${turn}`)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      id: turn,
      object: 'turn',
      conversation_id: conversation,
      number: 1,
      previous_id: null,
      agent_id,
      agent_version: 1,
      kind: 'model',
      status: 'completed',
      reason: null,
      error_code: null,
      background: false,
      provider: 'mock',
      model: 'mock',
      diagnostics: { attempts: [{ outcome: 'ok' }] },
    })
    expect(body.prompt_tokens).toBeGreaterThan(0)
    expect(body.completion_tokens).toBeGreaterThan(0)
    expect(body.ended_at).toBeGreaterThanOrEqual(body.created_at)
    expect(text).not.toContain(responseId)
  })

  test('has a reason if it is incomplete', async () => {
    const { app, agent_key } = await startKeeper()
    const { turn } = await runTurn(app, agent_key, 'one two three four', { max_output_tokens: 2 })
    const { body } = await app.call('GET', `/v1/turns/${turn}`)
    expect(body).toMatchObject({ status: 'incomplete', reason: 'max_output_tokens' })
  })

  test('cannot be read by another tenant or with an agent key', async () => {
    const { app, agent_key } = await startKeeper()
    const { turn, conversation } = await runTurn(app, agent_key, 'Hello')
    const other = await startApp()
    expect((await other.call('GET', `/v1/turns/${turn}`)).status).toBe(404)
    const missing = await app.call('GET', `/v1/turns/${NOWHERE}`)
    expect([missing.status, missing.body.error.param]).toEqual([404, 'turn_id'])
    for (const path of [`/v1/turns/${turn}`, `/v1/conversations/${conversation}/turns`])
      expect((await app.call('GET', path, { key: agent_key })).status).toBe(403)
  })
})

describe('the turns of a conversation', () => {
  test('are listed in pages, newest first or oldest first', async () => {
    const { app, agent_key } = await startKeeper()
    let { responseId, conversation } = await runTurn(app, agent_key, 'First')
    for (const input of ['Second', 'Third']) {
      const next = await runTurn(app, agent_key, input, { previous_response_id: responseId })
      responseId = next.responseId
      conversation = next.conversation
    }
    const path = `/v1/conversations/${conversation}/turns`
    const numbersOf = (body: { data: { number: number }[] }) => body.data.map(({ number }) => number)
    const newest = (await app.call('GET', `${path}?limit=2`)).body
    expect([numbersOf(newest), newest.has_more]).toEqual([[3, 2], true])
    const rest = (await app.call('GET', `${path}?after=${newest.last_id}`)).body
    expect([numbersOf(rest), rest.has_more]).toEqual([[1], false])
    expect(numbersOf((await app.call('GET', `${path}?order=asc`)).body)).toEqual([1, 2, 3])
    const wrong = await app.call('GET', `${path}?after=${NOWHERE}`)
    expect([wrong.status, wrong.body.error.param]).toEqual([400, 'after'])
  })

  test("are linked to their items, which have authors, and the conversation list contains the last turn's status", async () => {
    const { app, agent_key } = await startKeeper()
    const first = await runTurn(app, agent_key, '[[tool:weather {"city":"Oslo"}]]')
    const { conversation } = first
    const items = (await app.call('GET', `/v1/conversations/${conversation}/items?order=asc`)).body.data
    expect(items.map(({ type, parley }: { type: string; parley: object }) => [type, parley])).toEqual(
      [
        ['message', 'visitor'],
        ['function_call', 'model'],
        ['function_call_output', 'tool'],
        ['message', 'model'],
      ].map(([type, author]) => [type, { turn_id: first.turn, author, created_at: expect.any(Number) }]),
    )
    const statusOf = async () => (await app.call('GET', '/v1/conversations')).body.data[0].parley.last_status
    expect(await statusOf()).toBe('completed')
    const failing = await app.call('POST', '/v1/responses', {
      key: agent_key,
      body: { model: 'mock', input: '[[error:400]]', previous_response_id: first.responseId },
    })
    expect(failing.status).toBeGreaterThanOrEqual(400)
    await expect.poll(statusOf).toBe('failed')
    const one = await app.call('GET', `/v1/conversations/${conversation}`)
    expect(one.body.parley).toMatchObject({ turns: 2, last_status: 'failed' })
  })

  test('are counted as 0 in a new conversation, whose last status is null', async () => {
    const app = await startApp()
    const created = await app.call('POST', '/v1/conversations', { body: {} })
    expect(created.body.parley).toMatchObject({ turns: 0, last_status: null })
  })
})
