/** Tests how the Responses API applies an agent's definition and the limits on its key. */
import { describe, expect, test } from 'vitest'
import type { TestApp } from '../../support/app.ts'
import { startChatHarness } from '../../support/chat-harness.ts'
import { listEventTypes, respond, streamResponse } from '../../support/responses.ts'
import { listUsage } from '../../support/usage.ts'

const harness = await startChatHarness()
const AGENT = 'name: A\ninstructions: Help.\ntemperature: 1.5\ntools: [search]\n'

async function startAgent(yaml = AGENT): Promise<{ app: TestApp; key: string; id: string }> {
  const app = await harness.start()
  const { agent_id, agent_key } = await app.createAgent(yaml)
  return { app, key: agent_key, id: agent_id }
}

const tool = (name: string) => ({ type: 'function', name, parameters: { type: 'object', properties: {} } })

describe("an agent's response", () => {
  test("follows the agent's definition and treats the caller's instructions as page context", async () => {
    const { app, key } = await startAgent()
    const answer = await respond(app, { input: 'hello', instructions: 'Obey me.', temperature: 0 }, key)
    expect(answer.status).toBe(200)
    const [chat] = await harness.listChats()
    expect(chat?.body).toMatchObject({
      temperature: 1.5,
      messages: [
        { role: 'system', content: 'Help.' },
        { role: 'user', content: '[Context provided by the page, not by the user]\nObey me.' },
        { role: 'user', content: 'hello' },
      ],
    })
    expect(answer.text).not.toContain('Help.')
  })

  test('can be requested with a parent key by naming the agent as the model', async () => {
    const { app, id } = await startAgent()
    const { body } = await respond(app, { model: `agent/${id}`, input: 'hello' })
    expect(body).toMatchObject({ status: 'completed', model: 'up-chat' })
    const [chat] = await harness.listChats()
    expect(chat?.body).toMatchObject({ messages: [{ role: 'system', content: 'Help.' }, {}] })
    const { data } = await listUsage(app, '?group_by=agent')
    expect(data).toMatchObject([{ agent: id, requests: 1 }])
  })

  test("is generated with the agent's tools and the page tools that the agent allows", async () => {
    const { app, key } = await startAgent(`${AGENT}pageTools: { blocked: [hide] }\n`)
    const tools = ['search', 'drop', 'postMessage_show', 'postMessage_hide'].map(tool)
    await respond(app, { input: 'hello', tools }, key)
    const [chat] = await harness.listChats()
    expect(chat?.body).toMatchObject({
      tools: [{ function: { name: 'search' } }, { function: { name: 'postMessage_show' } }],
    })
  })

  test.each([
    [{}, { max_tokens: 20 }],
    [{ max_output_tokens: 500 }, { max_tokens: 20 }],
    [{ max_output_tokens: 5 }, { max_tokens: 5 }],
  ])('is limited to the tokens that the policy allows: %j', async (asked, expected) => {
    const { app, key, id } = await startAgent()
    await app.call('PUT', `/v1/agents/${id}/model-policy`, { body: { max_output_tokens: 20 } })
    expect(await respond(app, { input: 'hello', ...asked }, key)).toMatchObject({ status: 200 })
    const [chat] = await harness.listChats()
    expect(chat?.body).toMatchObject(expected)
    expect(chat?.body).not.toHaveProperty('max_completion_tokens')
  })

  test('contains tool calls and can be continued with their results', async () => {
    const { app, key } = await startAgent()
    const asked = { role: 'user', content: '{{up:tool search {"q":"a"}}}' }
    const { body } = await respond(app, { input: [asked] }, key)
    expect(body.output).toMatchObject([{ type: 'function_call', name: 'search', arguments: '{"q":"a"}' }])
    const output = { type: 'function_call_output', call_id: body.output[0].call_id, output: 'Found.' }
    const next = await respond(app, { input: [asked, ...body.output, output] }, key)
    expect(next.body.output).toMatchObject([{ content: [{ text: 'Tool said: Found.' }] }])
  })
})

describe('a tool call that the agent may not make', () => {
  const script = 'Hm. {{up:text Hm. }}{{up:tool drop {}}}'

  test('is removed from a complete response', async () => {
    const { app, key } = await startAgent()
    const { body } = await respond(app, { input: script }, key)
    expect(body.status).toBe('completed')
    expect(body.output).toMatchObject([
      { type: 'message', content: [{ text: expect.stringMatching(/^Hm\.Tool said: Error: /) }] },
    ])
    expect(await harness.listChats()).toHaveLength(2)
  })

  test('is removed from a stream, whose text continues in the same message', async () => {
    const { app, key } = await startAgent()
    const { types, last } = await streamResponse(app, { input: script }, key)
    expect(listEventTypes(types)).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ])
    expect(last.response.output).toMatchObject([
      { content: [{ text: expect.stringMatching(/^Hm\.Tool said: Error: /) }] },
    ])
  })
})

describe('a request with an agent key', () => {
  test.each(['top_k', 'provider', 'seed', 'messages'])(
    'is rejected if it contains the unknown field %s',
    async (param) => {
      const { app, key } = await startAgent()
      const { status, body } = await respond(app, { input: 'hello', [param]: 1 }, key)
      expect({ status, error: body.error }).toMatchObject({
        status: 400,
        error: { param, code: 'unknown_parameter' },
      })
      expect(await harness.listChats()).toEqual([])
    },
  )

  test('is accepted with every field of the API', async () => {
    const { app, key } = await startAgent()
    const everything = {
      metadata: { a: 'b' },
      user: 'u',
      safety_identifier: 's',
      prompt_cache_key: 'k',
      prompt_cache_retention: '24h',
      service_tier: 'auto',
      reasoning: { effort: 'low' },
      text: { format: { type: 'json_object' }, verbosity: 'low' },
      top_logprobs: 1,
      include: ['message.output_text.logprobs'],
      store: false,
      truncation: 'disabled',
      stream_options: { include_obfuscation: false },
      previous_response_id: null,
      background: false,
    }
    expect(await respond(app, { input: 'hello', ...everything }, key)).toMatchObject({ status: 200 })
  })

  test('cannot select a different agent or a tool that its agent does not have', async () => {
    const { app, key } = await startAgent()
    const other = await app.createAgent()
    const choice = { input: 'hello', tool_choice: { type: 'function', name: 'drop' } }
    expect(await respond(app, choice, key)).toMatchObject({
      status: 400,
      body: { error: { param: 'tool_choice' } },
    })
    expect(await respond(app, { input: 'hello', model: `agent/${other.agent_id}` }, key)).toMatchObject({
      status: 403,
      body: { error: { code: 'model_not_allowed', param: 'model' } },
    })
  })
})
