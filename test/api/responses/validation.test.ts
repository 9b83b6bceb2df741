/**
 * Tests which Responses API requests are accepted, and which field the error for an invalid request names.
 */
import { describe, expect, test } from 'vitest'
import { startApp } from '../../support/app.ts'
import { respond } from '../../support/responses.ts'

const user = { role: 'user', content: 'hello' }
const call = { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' }
const output = { type: 'function_call_output', call_id: 'a', output: 'x' }
const tool = { type: 'function', name: 'f' }
const items = (...input: unknown[]) => ({ input })
const part = (...content: unknown[]) => items({ role: 'user', content })
const format = (fields: object) => ({ text: { format: fields } })

describe('a Responses API request', () => {
  const optional = `model instructions tools tool_choice parallel_tool_calls max_tool_calls temperature top_p max_output_tokens text
    reasoning top_logprobs include metadata user safety_identifier prompt_cache_key prompt_cache_retention service_tier truncation store
    stream stream_options previous_response_id conversation prompt background`

  test.each<[string, object]>([
    ...optional.split(/\s+/).map((field): [string, object] => [`with null for ${field}`, { [field]: null }]),
    ['with the smallest numbers', { temperature: 0, top_p: 0, top_logprobs: 0, max_output_tokens: 1 }],
    ['with the largest numbers', { temperature: 2, top_p: 1, top_logprobs: 20 }],
    ['with null in a tool', { tools: [{ ...tool, description: null, parameters: null, strict: null }] }],
    ['with fields of other tool types', { tools: [{ ...tool, defer_loading: false, output_schema: null }] }],
    ['with null for the text format and verbosity', { text: { format: null, verbosity: null } }],
    [
      'with null for reasoning settings',
      { reasoning: { effort: null, summary: null, generate_summary: null } },
    ],
    ['with known and unknown include values', { include: ['reasoning.encrypted_content', 'something.new'] }],
    ['with 16 metadata keys', { metadata: Object.fromEntries(many(16, (index) => [`k${index}`, 'v'])) }],
    ['with a phase and an id in a message', items({ ...user, id: 'msg_1', phase: 'final_answer' })],
    ['with an empty output', items(call, { ...output, output: '' })],
    [
      'with the status of a call',
      items({ ...call, id: 'fc_1', status: 'completed' }, { ...output, id: null }),
    ],
    ['with unknown fields', { top_k: 5, context_management: [{ type: 'compaction' }] }],
  ])('is accepted %s', async (_how, change) => {
    const answer = await respond(await startApp(), { input: 'hello', ...change })
    expect(answer).toMatchObject({ status: 200, body: { object: 'response', error: null } })
  })
})

describe('an invalid Responses API request', () => {
  test.each<[object, string]>([
    [{ input: undefined }, 'input'],
    [{ input: null }, 'input'],
    [{ input: 7 }, 'input'],
    [{ input: [] }, 'input'],
    [items({ type: 'reasoning', id: 'rs_1', summary: [] }), 'input'],
    [items('hello'), 'input[0]'],
    [items(null), 'input[0]'],
    [items({ type: 'item_reference' }), 'input[0].id'],
    [items({ type: 'web_search_call', id: 'ws_1' }), 'input[0].type'],
    [items({ type: 7 }), 'input[0].type'],
    [items({ content: 'hello' }), 'input[0].role'],
    [items({ ...user, role: 'tool' }), 'input[0].role'],
    [items({ role: 'user' }), 'input[0].content'],
    [items({ ...user, content: 7 }), 'input[0].content'],
    [items({ role: 'assistant', content: null }), 'input[0].content'],
    [part('hello'), 'input[0].content[0]'],
    [part({ text: 'hello' }), 'input[0].content[0].type'],
    [part({ type: 'text', text: 'hello' }), 'input[0].content[0].type'],
    [part({ type: 'refusal', refusal: 'no' }), 'input[0].content[0].type'],
    [part({ type: 'input_text' }), 'input[0].content[0].text'],
    [part({ type: 'input_image', file_id: 'file-1' }), 'input[0].content[0].image_url'],
    [part({ type: 'input_file' }), 'input[0].content[0].file_data'],
    [
      part({ type: 'input_file', file_data: 'x', file_url: 'https://example.org' }),
      'input[0].content[0].file_url',
    ],
    [part({ type: 'input_audio' }), 'input[0].content[0].input_audio'],
    [
      items({ role: 'assistant', content: [{ type: 'input_image', image_url: 'data:,' }] }),
      'input[0].content[0].type',
    ],
    [items({ ...call, call_id: undefined }), 'input[0].call_id'],
    [items({ ...call, call_id: '' }), 'input[0].call_id'],
    [items({ ...call, name: 'no spaces' }), 'input[0].name'],
    [items({ ...call, arguments: {} }), 'input[0].arguments'],
    [items(call, { ...output, call_id: null }), 'input[1].call_id'],
    [items(call, { ...output, output: undefined }), 'input[1].output'],
    [items(call, { ...output, output: [{ type: 'x' }] }), 'input[1].output[0].type'],
    [items(user, call, output, { ...output, call_id: 'b' }), 'input[3].call_id'],
    [items(output, call), 'input[0].call_id'],
    [{ model: '' }, 'model'],
    [{ instructions: 7 }, 'instructions'],
    [{ instructions: [user] }, 'instructions'],
    [{ tools: {} }, 'tools'],
    [{ tools: [tool, { type: 'web_search' }] }, 'tools[1].type'],
    [{ tools: [{ ...tool, type: 'custom' }] }, 'tools[0].type'],
    [{ tools: [{ type: 'function', function: { name: 'f' } }] }, 'tools[0].name'],
    [{ tools: [{ ...tool, name: 'no spaces' }] }, 'tools[0].name'],
    [{ tools: [{ ...tool, parameters: [] }] }, 'tools[0].parameters'],
    [{ tools: [{ ...tool, strict: 'yes' }] }, 'tools[0].strict'],
    [{ tool_choice: 7 }, 'tool_choice'],
    [{ tool_choice: 'sometimes' }, 'tool_choice'],
    [{ tool_choice: { type: 'web_search' } }, 'tool_choice.type'],
    [{ tool_choice: { type: 'function' } }, 'tool_choice.name'],
    [{ tool_choice: { type: 'allowed_tools', mode: 'none', tools: [] } }, 'tool_choice.mode'],
    [{ tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{}] } }, 'tool_choice.tools[0].type'],
    [{ parallel_tool_calls: 'no' }, 'parallel_tool_calls'],
    [{ max_tool_calls: 0 }, 'max_tool_calls'],
    [{ temperature: 2.1 }, 'temperature'],
    [{ top_p: -0.1 }, 'top_p'],
    [{ max_output_tokens: 0 }, 'max_output_tokens'],
    [{ max_output_tokens: '5' }, 'max_output_tokens'],
    [{ text: 'json' }, 'text'],
    [format({ type: 'yaml' }), 'text.format.type'],
    [format({ type: 'json_schema', schema: {} }), 'text.format.name'],
    [format({ type: 'json_schema', name: 'n', schema: [] }), 'text.format.schema'],
    [{ text: { verbosity: 3 } }, 'text.verbosity'],
    [{ reasoning: 'low' }, 'reasoning'],
    [{ reasoning: { effort: 3 } }, 'reasoning.effort'],
    [{ top_logprobs: 21 }, 'top_logprobs'],
    [{ include: 'all' }, 'include'],
    [{ metadata: { a: 1 } }, 'metadata.a'],
    [{ metadata: { a: 'x'.repeat(513) } }, 'metadata.a'],
    [{ metadata: Object.fromEntries(many(17, (index) => [`k${index}`, 'v'])) }, 'metadata'],
    [{ user: 7 }, 'user'],
    [{ safety_identifier: 7 }, 'safety_identifier'],
    [{ service_tier: 7 }, 'service_tier'],
    [{ truncation: 'yes' }, 'truncation'],
    [{ store: 'no' }, 'store'],
    [{ stream: 'true' }, 'stream'],
    [{ stream_options: true }, 'stream_options'],
  ])('with %j returns 400 for the field %s', async (change, param) => {
    const answer = await respond(await startApp(), { input: 'hello', ...change })
    expect(answer).toMatchObject({
      status: 400,
      body: { error: { type: 'invalid_request_error', code: 'invalid_value', param } },
    })
    expect(answer.body.error.message.startsWith(`${param}: `)).toBe(true)
  })

  test.each<[object, string]>([
    [{ previous_response_id: 'resp_1' }, 'previous_response_id'],
    [{ conversation: 'conv_1' }, 'conversation'],
    [{ conversation: { id: 'conv_1' } }, 'conversation'],
    [{ prompt: { id: 'pmpt_1' } }, 'prompt'],
    [{ background: true }, 'background'],
    [items(user, { type: 'item_reference', id: 'msg_1' }), 'input[1].type'],
  ])('returns 400 if it depends on stored state: %j', async (change, param) => {
    const { status, body } = await respond(await startApp(), { input: 'hello', ...change })
    expect({ status, param: body.error.param }).toEqual({ status: 400, param })
    expect(body.error.message).toMatch(/: .* because the server stores no \w+/)
    expect(body.error.code).toBe(param === 'prompt' ? 'invalid_value' : 'conversations_off')
  })

  test.each<[string, object, object]>([
    ['the server stores no conversations', { PARLEY_CONVERSATIONS: 'forbidden' }, {}],
    ['the request sets store to false', {}, { store: false }],
  ])('returns 400 for a background response because %s', async (reason, env, change) => {
    const app = await startApp({ ...env })
    const yaml = 'name: A\ninstructions: Greet.\nconversations: { keep: 1d }\n'
    const { agent_key } = await app.createAgent(yaml)
    const { status, body } = await respond(app, { input: 'hello', background: true, ...change }, agent_key)
    expect({ status, ...body.error }).toMatchObject({ status: 400, code: 'conversations_off' })
    expect(body.error.message).toBe(`background: must be false, because ${reason}`)
  })

  test('returns 400 for a background response if the agent does not store conversations', async () => {
    const app = await startApp()
    const { agent_id, agent_key } = await app.createAgent()
    const { body } = await respond(app, { input: 'hello', background: true }, agent_key)
    expect(body.error.message).toBe(
      `background: must be false, because the agent ${agent_id} stores no conversations`,
    )
  })

  const length = 2 * 1024 * 1024 + 1
  test.each<[string, object, string]>([
    ['the list of items', { input: many(2049, () => user) }, 'input'],
    ['the list of tools', { tools: many(129, (index) => ({ ...tool, name: `f${index}` })) }, 'tools'],
    ['the input', { input: 'x'.repeat(length) }, 'input'],
    ['a text', part({ type: 'input_text', text: 'x'.repeat(length) }), 'input[0].content[0].text'],
    ['the instructions field', { instructions: 'x'.repeat(length) }, 'instructions'],
    ['the arguments field', items({ ...call, arguments: 'x'.repeat(256 * 1024 + 1) }), 'input[0].arguments'],
    ['an output', items(call, { ...output, output: 'x'.repeat(length) }), 'input[1].output'],
  ])('returns 400 if %s is too large', async (_what, change, param) => {
    const answer = await respond(await startApp(), { input: 'hello', ...change })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'invalid_value', param } } })
  })

  test('returns 413 if the body exceeds the configured limit', async () => {
    const app = await startApp({ PARLEY_MAX_BODY_BYTES: '2000000' })
    expect(await respond(app, { input: 'x'.repeat(1_900_000) })).toMatchObject({ status: 200 })
    expect(await respond(app, { input: 'x'.repeat(2_100_000) })).toMatchObject({ status: 413 })
  })
})

function many<Item>(count: number, item: (index: number) => Item): Item[] {
  return Array.from({ length: count }, (_, index) => item(index))
}
