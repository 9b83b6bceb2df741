/** Tests OpenAI's agents library with client-side and server-side tools in chat-completions mode. */

import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } from '@openai/agents'
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
// The library would otherwise send traces to OpenAI.
setTracingDisabled(true)

function agentOf({ baseURL, apiKey, model, answer }: Conversation) {
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 })
  const ask = tool({
    name: 'ask',
    description: 'Asks the user.',
    parameters: askSchema,
    strict: true,
    execute: (input) => answer(input as { question: string }),
  })
  return new Agent({
    name: 'Client',
    instructions: 'Use the tools.',
    model: new OpenAIChatCompletionsModel(client, model),
    tools: [ask],
  })
}

describe.each(backends)('an OpenAI agent that uses the %s', (backend) => {
  test('calls its tools without streaming', async () => {
    const conversation = await startConversation(harness, backend, 'whole')
    const { finalOutput } = await run(agentOf(conversation), conversation.prompt)
    await conversation.check(finalOutput)
  })

  test('calls its tools with streaming', async () => {
    const conversation = await startConversation(harness, backend, 'streamed')
    const result = await run(agentOf(conversation), conversation.prompt, { stream: true })
    let text = ''
    for await (const piece of result.toTextStream({ compatibleWithNodeStreams: true })) text += piece
    await result.completed
    await conversation.check(result.finalOutput)
    expect(text.endsWith(String(result.finalOutput))).toBe(true)
  })
})

test('an OpenAI agent does not see calls to server-side tools', async () => {
  const conversation = await startConversation(harness, 'mock', 'whole')
  const { finalOutput, newItems } = await run(agentOf(conversation), serverToolPrompt)
  expect([finalOutput, newItems.length]).toEqual([serverToolAnswer, 1])
})
