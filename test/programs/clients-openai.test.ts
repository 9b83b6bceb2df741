/** Tests the tool runner of the official OpenAI client with client-side and server-side tools. */
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { startChatHarness } from '../support/chat-harness.ts'
import {
  askSchema,
  backends,
  type Conversation,
  serverToolAnswer,
  serverToolPrompt,
  startConversation,
} from '../support/clients.ts'

const harness = await startChatHarness()

const clientOf = ({ baseURL, apiKey }: Conversation) => new OpenAI({ baseURL, apiKey, maxRetries: 0 })

function requestOf({ model, answer }: Conversation, content: string) {
  const ask = {
    name: 'ask',
    description: 'Asks the user.',
    parameters: askSchema,
    parse: JSON.parse,
    function: answer,
  }
  return {
    model,
    messages: [{ role: 'user' as const, content }],
    tools: [{ type: 'function' as const, function: ask }],
  }
}

describe.each(backends)('runTools with the %s', (backend) => {
  test('runs client-side and server-side tools without streaming', async () => {
    const conversation = await startConversation(harness, backend, 'whole')
    const runner = clientOf(conversation).chat.completions.runTools(
      requestOf(conversation, conversation.prompt),
    )
    await conversation.check(await runner.finalContent())
    expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
  })

  test('runs client-side and server-side tools with streaming', async () => {
    const conversation = await startConversation(harness, backend, 'streamed')
    const request = { ...requestOf(conversation, conversation.prompt), stream: true as const }
    await conversation.check(await clientOf(conversation).chat.completions.runTools(request).finalContent())
  })
})

test('runTools does not see calls to server-side tools', async () => {
  const conversation = await startConversation(harness, 'mock', 'streamed')
  const request = { ...requestOf(conversation, serverToolPrompt), stream: true as const }
  const runner = clientOf(conversation).chat.completions.runTools(request)
  expect(await runner.finalContent()).toBe(serverToolAnswer)
  expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
})
