/**
 * Tests, with generated requests, that the check without zod accepts only what both request schemas accept
 * unchanged.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isPlainRequest } from '../../src/chat/plain-request.ts'
import { PublicRequest } from '../../src/chat/public-request.ts'
import { ChatRequest } from '../../src/providers/chat-api.ts'
import { chatRequest } from '../bench/requests.ts'

const role = fc.constantFrom(
  'system',
  'developer',
  'user',
  'assistant',
  'tool',
  'function',
  'wizard',
  null,
  3,
)
const content = fc.oneof(
  { weight: 6, arbitrary: fc.string() },
  fc.constantFrom(null, undefined, 7, '', 'x'.repeat(2 * 1024 * 1024), 'x'.repeat(2 * 1024 * 1024 + 1)),
  fc.constant([{ type: 'text', text: 'hello' }]),
)
const message = fc.oneof(
  { weight: 8, arbitrary: fc.record({ role, content }) },
  fc.record({ role, content, name: fc.string(), tool_call_id: fc.string() }),
  fc.record({ role, content, tool_calls: fc.constant([]) }),
  fc.constantFrom(null, [], 'hello', {}),
)
const number = fc.oneof(
  fc.double(),
  fc.integer({ min: -3, max: 3 }),
  fc.constantFrom(null, '1', Number.POSITIVE_INFINITY, 2 ** 53, -(2 ** 53), 0.5, -0, 1.5),
)
const text = fc.oneof(
  fc.string(),
  fc.constantFrom('', null, 1, 'x'.repeat(300), 'x'.repeat(301), 'x'.repeat(1024), 'x'.repeat(1025)),
)
const flag = fc.constantFrom(true, false, null, 'true', 0)
const fields = {
  messages: fc.oneof(
    { weight: 9, arbitrary: fc.array(message, { maxLength: 4 }) },
    fc.constantFrom(null, {}, 'hello'),
    fc.constantFrom(2048, 2049).map((length) => Array(length).fill({ role: 'user', content: 'x' })),
  ),
  model: text,
  stream: flag,
  temperature: number,
  top_p: number,
  frequency_penalty: number,
  presence_penalty: number,
  max_tokens: number,
  max_completion_tokens: number,
  seed: number,
  user: text,
  n: number,
  stop: text,
  tools: fc.constantFrom([], null),
  store: flag,
  service_tier: text,
  unknown_field: text,
}
const request = fc.oneof(
  { weight: 20, arbitrary: fc.record(fields, { requiredKeys: [] }) },
  fc.constantFrom(null, [], 'hello', 3),
)

/** * Requests that differ from an accepted one in at most two fields; random requests are rarely accepted. */
const nearlyPlain = fc
  .tuple(fc.constantFrom(...Object.keys(fields)), fc.constantFrom(...Object.keys(fields)), fc.record(fields))
  .map(([one, other, { [one as keyof typeof fields]: first, [other as keyof typeof fields]: second }]) => ({
    model: 'm',
    messages: [{ role: 'user', content: 'hello' }],
    temperature: 1,
    [one]: first,
    [other]: second,
  }))

test('a request that is recognized as plain is accepted unchanged by the schemas for both kinds of keys', () => {
  fc.assert(
    fc.property(fc.oneof(request, nearlyPlain), (sent) => {
      if (!isPlainRequest(sent)) return
      expect(ChatRequest.parse(sent)).toEqual(sent)
      expect(PublicRequest.parse(sent)).toEqual(sent)
    }),
    { numRuns: 3000 },
  )
})

test.each([true, false])("the benchmark's chat request is recognized as plain (stream: %s)", (stream) => {
  const http = chatRequest('svc_x', { model: 'bench-model', stream }).toString()
  expect(isPlainRequest(JSON.parse(http.slice(http.indexOf('\r\n\r\n'))))).toBe(true)
})
