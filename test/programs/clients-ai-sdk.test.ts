/** Tests Vercel's AI SDK and its OpenAI-compatible provider with client-side and server-side tools. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, isStepCount, jsonSchema, streamText, tool } from 'ai'
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

function requestOf({ baseURL, apiKey, model, answer }: Conversation, prompt: string) {
  const provider = createOpenAICompatible({ name: 'parley', baseURL, apiKey, includeUsage: true })
  const ask = tool({
    description: 'Asks the user.',
    inputSchema: jsonSchema<{ question: string }>(askSchema),
    execute: answer,
  })
  return { model: provider(model), prompt, tools: { ask }, stopWhen: isStepCount(5), maxRetries: 0 }
}

describe.each(backends)('the AI SDK with the %s', (backend) => {
  test('calls client-side tools in generateText', async () => {
    const conversation = await startConversation(harness, backend, 'whole')
    const { text, steps, finishReason } = await generateText(requestOf(conversation, conversation.prompt))
    await conversation.check(text)
    expect([steps.length, finishReason]).toEqual([2, 'stop'])
  })

  test('calls client-side tools in streamText', async () => {
    const conversation = await startConversation(harness, backend, 'streamed')
    const result = streamText(requestOf(conversation, conversation.prompt))
    const pieces: string[] = []
    for await (const piece of result.textStream) pieces.push(piece)
    await conversation.check(await result.text)
    expect(pieces.length).toBeGreaterThan(1)
    expect((await result.totalUsage).totalTokens).toBeGreaterThan(0)
  })
})

test('the AI SDK does not see calls to server-side tools', async () => {
  const conversation = await startConversation(harness, 'mock', 'streamed')
  const result = streamText(requestOf(conversation, serverToolPrompt))
  expect(await result.text).toBe(serverToolAnswer)
  expect(await result.steps).toHaveLength(1)
})
