/**
 * Tests the requirements of the Open Responses specification (https://www.openresponses.org) with the cases
 * of its acceptance tests.
 */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { readEvents, startApp } from '../../support/app.ts'

const status = z.enum(['in_progress', 'completed', 'incomplete'])
const Part = z.looseObject({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(z.never()),
})
const Item = z.discriminatedUnion('type', [
  z.looseObject({
    ...{ type: z.literal('message'), id: z.string(), status },
    ...{ role: z.literal('assistant'), content: z.array(Part) },
  }),
  z.looseObject({
    ...{ type: z.literal('function_call'), id: z.string(), status },
    ...{ call_id: z.string(), name: z.string(), arguments: z.string() },
  }),
])

const nullableText = z.string().nullable()
const nullableCount = z.int().nullable()

/** The required fields of a response. */
const Resource = z.looseObject({
  id: z.string(),
  object: z.literal('response'),
  created_at: z.int(),
  completed_at: nullableCount,
  status: z.string(),
  incomplete_details: z.object({ reason: z.string() }).nullable(),
  model: z.string(),
  previous_response_id: nullableText,
  instructions: nullableText,
  output: z.array(Item),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  tools: z.array(
    z.looseObject({
      ...{ type: z.literal('function'), name: z.string(), description: nullableText },
      ...{ parameters: z.looseObject({}).nullable(), strict: z.boolean().nullable() },
    }),
  ),
  tool_choice: z.union([z.enum(['none', 'auto', 'required']), z.looseObject({ type: z.string() })]),
  truncation: z.enum(['auto', 'disabled']),
  parallel_tool_calls: z.boolean(),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }) }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: z.int(),
  temperature: z.number(),
  reasoning: z.object({ effort: nullableText, summary: nullableText }).nullable(),
  usage: z
    .looseObject({
      ...{ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() },
      input_tokens_details: z.looseObject({ cached_tokens: z.int() }),
      output_tokens_details: z.looseObject({ reasoning_tokens: z.int() }),
    })
    .nullable(),
  max_output_tokens: nullableCount,
  max_tool_calls: nullableCount,
  store: z.boolean(),
  background: z.boolean(),
  service_tier: z.string(),
  metadata: z.record(z.string(), z.string()),
  safety_identifier: nullableText,
  prompt_cache_key: nullableText,
})

const at = { sequence_number: z.int(), output_index: z.int() }
const inItem = { ...at, item_id: z.string() }
const inPart = { ...inItem, content_index: z.int() }
const event = <Type extends string, Shape extends z.core.$ZodLooseShape>(type: Type, shape: Shape) =>
  z.looseObject({ type: z.literal(type), ...shape })
const withResponse = { sequence_number: z.int(), response: Resource }

const StreamEvent = z.discriminatedUnion('type', [
  event('response.created', withResponse),
  event('response.in_progress', withResponse),
  event('response.completed', withResponse),
  event('response.output_item.added', { ...at, item: Item }),
  event('response.output_item.done', { ...at, item: Item }),
  event('response.content_part.added', { ...inPart, part: Part }),
  event('response.content_part.done', { ...inPart, part: Part }),
  event('response.output_text.delta', { ...inPart, delta: z.string() }),
  event('response.output_text.done', { ...inPart, text: z.string() }),
  event('response.function_call_arguments.delta', { ...inItem, delta: z.string() }),
  event('response.function_call_arguments.done', { ...inItem, arguments: z.string() }),
])

const user = (content: unknown) => ({ type: 'message', role: 'user', content })
const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'Get the current weather for a location',
  parameters: { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] },
}
const image =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const cases: [what: string, body: object, output: string][] = [
  ['a message', { input: [user('Say hello.')] }, 'message'],
  [
    'a system message',
    { input: [{ type: 'message', role: 'system', content: 'You are a pirate.' }, user('Say hello.')] },
    'message',
  ],
  [
    'a function',
    { input: [user('[[tool:get_weather {"location":"Oslo"}]]')], tools: [weather] },
    'function_call',
  ],
  [
    'an image',
    {
      input: [
        user([
          { type: 'input_text', text: 'What is this?' },
          { type: 'input_image', image_url: image },
        ]),
      ],
    },
    'message',
  ],
  [
    'earlier messages',
    {
      input: [
        user('My name is Alice.'),
        { type: 'message', role: 'assistant', content: 'Hello Alice!' },
        user('What is my name?'),
      ],
    },
    'message',
  ],
]

describe('a response to a request with', () => {
  test.each(cases)('%s has every required field', async (_what, body, output) => {
    const app = await startApp()
    const { status: code, body: response } = await app.call('POST', '/v1/responses', {
      body: { model: 'mock', ...body },
    })
    expect([code, response.status]).toEqual([200, 'completed'])
    expect(Resource.parse(response).output.map(({ type }) => type)).toEqual([output])
  })

  test.each(cases)('%s is streamed in events with every required field', async (_what, body, output) => {
    const app = await startApp()
    const { text } = await app.call('POST', '/v1/responses', {
      body: { model: 'mock', stream: true, ...body },
    })
    const events = readEvents(text).events.map((data) => StreamEvent.parse(data))
    const expected = output === 'message' ? 'output_text' : 'function_call_arguments'
    const types = events.map(({ type }) => type)
    for (const type of ['output_item.added', `${expected}.delta`, `${expected}.done`, 'output_item.done'])
      expect(types).toContain(`response.${type}`)
    expect(types.at(-1)).toBe('response.completed')
  })
})
